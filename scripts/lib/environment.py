"""Questions about a Python environment that the shell cannot answer.

environment.py torch            prints the version of this Python's own PyTorch, or nothing
environment.py share VENV       lets the environment VENV see this Python's packages, after its own
environment.py met FILE...      succeeds if every requirement of the files is installed, and prints those that are not
environment.py wanted FILE...   prints the requirements without PyTorch and without pins
environment.py owned VENV       prints the versions of packages seen from outside VENV, as pip's constraints

Runs before anything is installed: standard library and pip only, Python 3.9 and newer.
"""

import os
import re
import site
import sys
from importlib import metadata

OLDEST_TORCH = (1, 13)
SHARED = "fuseline-shared-packages.pth"  # in .venv, made by share()


def torch_version():
    """The version of this Python's PyTorch, or None if it has none, or one that is too old."""
    try:
        version = metadata.version("torch")
    except metadata.PackageNotFoundError:
        return None
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    return version if numbers >= OLDEST_TORCH else None


def package_folders():
    """Where this Python keeps its packages."""
    folders = site.getsitepackages()
    if site.ENABLE_USER_SITE:
        folders.append(site.getusersitepackages())
    # What was added by .pth files and PYTHONPATH counts too: everything that is not the standard library.
    standard = os.path.dirname(os.__file__)
    for folder in sys.path[1:]:
        inside = os.path.abspath(folder).startswith(standard + os.sep)
        if "-packages" in os.path.basename(folder) or not (inside or folder.endswith(".zip") or folder == standard):
            folders.append(folder)
    seen = []
    for folder in folders:
        folder = os.path.abspath(folder)
        if os.path.isdir(folder) and folder not in seen:
            seen.append(folder)
    return seen


def share(venv):
    """Writes a .pth file into the environment that adds this Python's package folders behind the environment's own.

    venv's --system-site-packages would do for a system's Python, but not where this Python is an environment itself."""
    name = "python{}.{}".format(*sys.version_info[:2])
    path = os.path.join(venv, "lib", name, "site-packages", SHARED)
    with open(path, "w", encoding="utf-8") as file:
        for folder in package_folders():
            file.write(f"import site; site.addsitedir({folder!r})\n")


def read_requirements(paths):
    """The requirements of pip's files, those included by -r too, that apply to this Python."""
    from pip._vendor.packaging.requirements import Requirement

    for path in paths:
        with open(path, encoding="utf-8") as file:
            for line in file:
                line = line.split("#")[0].strip()
                if line.startswith("-r"):
                    included = os.path.join(os.path.dirname(path), line[2:].strip())
                    yield from read_requirements([included])
                elif line:
                    requirement = Requirement(line)
                    if requirement.marker is None or requirement.marker.evaluate():
                        yield requirement


def is_installed(requirement, any_version):
    try:
        version = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return False
    return any_version or requirement.specifier.contains(version, prereleases=True)


def unmet(paths):
    any_version = torch_is_shared()
    return [str(requirement) for requirement in read_requirements(paths) if not is_installed(requirement, any_version)]


def torch_is_shared():
    return any(os.path.exists(os.path.join(folder, SHARED)) for folder in site.getsitepackages())


def wanted(paths):
    return sorted({requirement.name for requirement in read_requirements(paths) if requirement.name != "torch"})


def owned(venv):
    inside = os.path.realpath(venv) + os.sep
    versions = {}
    for distribution in metadata.distributions():
        folder = os.path.realpath(str(distribution.locate_file("")))
        name, version = distribution.metadata["Name"], distribution.version
        # pip takes no local versions ("2.9.1+rocm7.1") as constraints for what it would not find anyway.
        if name and not (folder + os.sep).startswith(inside) and "+" not in version:
            versions.setdefault(name, version)
    return [f"{name}=={version}" for name, version in sorted(versions.items())]


def main(action, *arguments):
    if action == "torch":
        print(torch_version() or "")
    elif action == "share":
        share(*arguments)
    elif action == "met":
        lines = unmet(arguments)
        print("\n".join(lines))
        return 1 if lines else 0
    elif action == "wanted":
        print("\n".join(wanted(arguments)))
    elif action == "owned":
        print("\n".join(owned(*arguments)))
    else:
        sys.exit("environment.py: unknown action " + action)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
