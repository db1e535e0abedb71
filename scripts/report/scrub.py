"""Takes out of texts what tells who and where: names of the user and the host, folders, addresses, serial numbers.

A text of our own making names none of them, but logs of compilers, of Python and of the driver do. It is no proof: an
address of version 4 that is public looks like a version, and is known by what stands about it alone; of a folder with
spaces in its name, what follows the space stays.
"""

import getpass
import os
import pathlib
import platform
import pwd
import re
import socket

USER, HOST, HOME, NUMBER, ADDRESS = "[user]", "[host]", "[home]", "[number]", "[address]"
FOLDER = "[folder]"

# Names that many machines have, and that occur in logs as ordinary words.
_COMMON = {"admin", "container", "debian", "docker", "fedora", "host", "localhost", "root", "test", "ubuntu", "user"}
_COMMON |= {text.strip("[]") for text in (USER, HOST, HOME, NUMBER, ADDRESS, FOLDER)}

# Hosts that everybody knows, and their subdomains: links to documentation stay whole.
_PUBLIC = r"(?:[\w-]+\.)*(?:(?:github|amd)\.com|(?:pytorch|python|llvm|gnu|matplotlib|numpy|pytest)\.org)"
_HEX = "[0-9a-fA-F]{1,4}"
_IPV4 = r"(?!127\.|0\.)\d{1,3}(?:\.\d{1,3}){3}"

_PATTERNS = (
    # GPU-1a2b3c4d5e6f7a8b is the driver's, the others are standard UUIDs and 128-bit ones in one piece.
    (re.compile(r"\bGPU-[0-9a-fA-F]{8,}(?:-[0-9a-fA-F]+)*"), NUMBER),
    (re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"), NUMBER),
    (
        re.compile(r"(?i)((?:serial|unique)[ _]*(?:number|id|no\.?)?[\"']?\s*[:=]\s*[\"']?)[0-9A-Za-z-]{4,}"),
        r"\1" + NUMBER,
    ),
    (re.compile(r"(?<![0-9a-zA-Z.])(?:0[xX])?(?=\d*[a-fA-F])[0-9a-fA-F]{32}(?![0-9a-zA-Z])"), NUMBER),
    # Hosts of URLs, with the user and the password in front of them; hosts that pip could not reach.
    (re.compile(r"(\b[a-zA-Z][\w+.-]*://)[^\s\"'<>]*@[^\s/:\"'<>,;)\]]+"), r"\1" + ADDRESS),
    (re.compile(rf"(\b[a-zA-Z][\w+.-]*://)(?!(?:{_PUBLIC}|localhost|127\.0\.0\.1)(?![\w.-]))[\w.-]+"), r"\1" + ADDRESS),
    (re.compile(r"((?:\bhost=|\bresolve )[\"'])[^\"'\[\]]+"), r"\1" + ADDRESS),
    (re.compile(r"\b(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}\b"), ADDRESS),
    (re.compile(r"(?<![\w.+-])[\w.+-]+@(?:[\w-]+\.)+[A-Za-z]{2,}\b"), ADDRESS),
    # Of version 6: those that begin as addresses on a network do, and those that are written in full.
    (
        re.compile(
            rf"(?<![\w:.])(?:[fF][eE][89abAB][0-9a-fA-F]|[fF][c-dC-D][0-9a-fA-F]{{2}}|[23][0-9a-fA-F]{{3}})"
            rf"(?::{_HEX}){{0,6}}::(?:{_HEX}(?::{_HEX}){{0,6}})?(?![\w:])"
        ),
        ADDRESS,
    ),
    (re.compile(rf"(?<![\w:.])(?:{_HEX}:){{7}}{_HEX}(?![\w:])"), ADDRESS),
    # Of version 4: with a port, or after a word that says so; 5.2.21153.0 is a version.
    (re.compile(rf"(?<![\w.]){_IPV4}(?=:\d{{2,5}}\b)"), ADDRESS),
    (
        re.compile(
            r"(?i)(\b(?:inet|ip|addr|address|host|server|proxy|peer|connect(?:ed|ion)? (?:to|from))\b[\"'=:(\s]{1,3})"
            rf"{_IPV4}(?![\w.])"
        ),
        r"\1" + ADDRESS,
    ),
    # Those in a private network need no such word.
    (
        re.compile(r"(?<![\w.])(?:10\.\d{1,3}|169\.254|172\.(?:1[6-9]|2\d|3[01])|192\.168)(?:\.\d{1,3}){2}(?![\w.])"),
        ADDRESS,
    ),
    # Home folders of others.
    (re.compile(r"(/(?:home|Users)/)[^/\s\"':,;()\[\]]+"), r"\1" + USER),
    # Disks are called as their owner likes.
    (re.compile(r"(?<![\w\]])/(?:mnt|media|run/media|Volumes)/[^\s\"':,;()\[\]<>]+"), FOLDER),
)


def _names(*functions):
    for function in functions:
        try:
            name = function()
        except (OSError, KeyError, ImportError, RuntimeError):  # RuntimeError: a user without a home
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
        """The same of every string in what json can write, of keys too; none is lost where two become the same."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            scrubbed = {}
            for key, item in value.items():
                wanted = key = self._key(key)
                number = 1
                while key in scrubbed:
                    number += 1
                    key = f"{wanted} ({number})"
                scrubbed[key] = self.value(item)
            return scrubbed
        if isinstance(value, (list, tuple)):
            return [self.value(item) for item in value]
        return value

    def _key(self, key):
        # A user may be called as one of the report's own short keys is, such as "us" and "op".
        return key if not isinstance(key, str) or re.fullmatch("[a-z_]{1,4}", key) else self.text(key)

    def finds_in(self, data):
        """Whether something is left in a file's bytes, pictures included, that would have been replaced."""
        text = data.decode("utf-8", "replace")
        return self.text(text) != text
