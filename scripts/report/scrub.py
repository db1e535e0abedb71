"""Takes out of texts what tells who and where: names of the user and the host, home folders, addresses, serial numbers.

A text of our own making names none of them, but logs of compilers, of Python and of the driver do.
"""

import getpass
import os
import pathlib
import platform
import pwd
import re
import socket

USER, HOST, HOME, NUMBER, ADDRESS = "[user]", "[host]", "[home]", "[number]", "[address]"

# Names that many machines have, and that occur in logs as ordinary words.
_COMMON = {"admin", "container", "debian", "docker", "fedora", "host", "localhost", "root", "test", "ubuntu", "user"}
_COMMON |= {text.strip("[]") for text in (USER, HOST, HOME, NUMBER, ADDRESS)}

_PATTERNS = (
    # GPU-1a2b3c4d5e6f7a8b is the driver's, the others are standard UUIDs and 128-bit ones in one piece.
    (re.compile(r"\bGPU-[0-9a-fA-F]{8,}(?:-[0-9a-fA-F]+)*"), NUMBER),
    (re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"), NUMBER),
    (
        re.compile(r"(?i)((?:serial|unique)[ _]*(?:number|id|no\.?)?[\"']?\s*[:=]\s*[\"']?)[0-9A-Za-z-]{4,}"),
        r"\1" + NUMBER,
    ),
    (re.compile(r"\b(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}\b"), ADDRESS),
    (re.compile(r"[\w.+-]+@(?:[\w-]+\.)+[A-Za-z]{2,}\b"), ADDRESS),
    # Addresses in a private network; others do not get into logs, and look like versions.
    (
        re.compile(r"(?<![\w.])(?:10\.\d{1,3}|169\.254|172\.(?:1[6-9]|2\d|3[01])|192\.168)(?:\.\d{1,3}){2}(?![\w.])"),
        ADDRESS,
    ),
    # Home folders of others.
    (re.compile(r"(/(?:home|Users)/)[^/\s\"':,;()\[\]]+"), r"\1" + USER),
)


def _names(*functions):
    for function in functions:
        try:
            name = function()
        except (OSError, KeyError, ImportError):
            continue
        if name:
            yield name


def _user_names():
    yield from _names(getpass.getuser, lambda: pwd.getpwuid(os.getuid()).pw_name)
    for variable in ("USER", "LOGNAME", "SUDO_USER", "USERNAME"):
        yield os.environ.get(variable, "")
    # The name in words, and its parts.
    for words in _names(lambda: pwd.getpwuid(os.getuid()).pw_gecos.split(",")[0]):
        yield words
        yield from (word for word in words.split() if len(word) >= 4)


def _host_names():
    for name in _names(socket.gethostname, platform.node, lambda: os.environ.get("HOSTNAME", "")):
        yield name
        yield name.split(".")[0]


def _homes():
    for home in _names(
        lambda: os.environ.get("HOME"), lambda: pwd.getpwuid(os.getuid()).pw_dir, lambda: str(pathlib.Path.home())
    ):
        yield home
        yield os.path.realpath(home)


def _pattern_of_name(name):
    """A short name counts where it stands alone, so as not to tear other words apart; a longer one everywhere."""
    escaped = re.escape(name)
    if len(name) >= 5:
        return re.compile(escaped, re.IGNORECASE)
    return re.compile(rf"(?<![0-9A-Za-z]){escaped}(?![0-9A-Za-z])")


class Scrubber:
    """What this machine's names are, and how they are replaced.

    Args:
        folders: {folder: what stands for it}, such as that of the clone.
    """

    def __init__(self, folders=None):
        self._replacements = []
        paths = dict(folders or {})
        paths.update({home: HOME for home in _homes() if len(home) > 1 and home not in paths})
        for folder, text in sorted(paths.items(), key=lambda item: -len(item[0])):
            self._replacements.append((re.compile(re.escape(folder) + r"(?![\w.-])"), text))
        names = {name: HOST for name in _host_names()}
        names.update({name: USER for name in _user_names()})
        for name, text in sorted(names.items(), key=lambda item: -len(item[0])):
            if len(name) > 1 and name.lower() not in _COMMON:
                self._replacements.append((_pattern_of_name(name), text))
        self._replacements.extend(_PATTERNS)

    def text(self, text):
        for pattern, replacement in self._replacements:
            text = pattern.sub(replacement, text)
        return text

    def value(self, value):
        """The same of every string in what json can write; keys are ours, and stay."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {key: self.value(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.value(item) for item in value]
        return value

    def finds_in(self, data):
        """Whether something is left in a file's bytes, pictures included, that would have been replaced."""
        text = data.decode("utf-8", "replace")
        return self.text(text) != text
