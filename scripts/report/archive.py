"""The archive: what may be sent, scrubbed, without the names and times of a file system."""

import gzip
import io
import json
import os
import tarfile

_LOG_BEGINNING, _LOG_END = 60_000, 200_000  # characters of a log that are kept


def shorten(text):
    if len(text) <= _LOG_BEGINNING + _LOG_END:
        return text
    left_out = len(text) - _LOG_BEGINNING - _LOG_END
    return f"{text[:_LOG_BEGINNING]}\n[... {left_out} characters left out ...]\n{text[-_LOG_END:]}"


class Archive:
    """Members are added one by one; a member that still names somebody is left out, and noted."""

    def __init__(self, scrubber):
        self._scrubber = scrubber
        self.members = {}
        self.left_out = []

    def scrubbed(self, value):
        """Of a text, or of what json can write."""
        return self._scrubber.value(value)

    def add_text(self, name, text):
        # In this order: of a name that was cut, a part would stay.
        self._add(name, shorten(self._scrubber.text(text)).encode())

    def add_json(self, name, value):
        value = self._scrubber.value(value)
        # The value is looked at, not the file: a user may be called as a key is.
        if self._scrubber.value(value) != value:
            self.left_out.append(name)
        else:
            self.members[name] = (json.dumps(value, indent=1) + "\n").encode()

    def add_picture(self, name, path):
        with open(path, "rb") as file:
            data = file.read()
        if not data.startswith(b"\x89PNG\r\n\x1a\n"):
            self.left_out.append(name)
        else:
            # Compressed pixels are chance; what a program writes about itself and its user stands in text chunks.
            self._add(name, data, _png_texts(data))

    def _add(self, name, data, to_check=None):
        if self._scrubber.finds_in(data if to_check is None else to_check):
            self.left_out.append(name)
        else:
            self.members[name] = data

    def write(self, path, folder):
        """Writes the members into one folder of the archive."""
        partial = path + ".partial"
        with open(partial, "wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as compressed:
            with tarfile.open(fileobj=compressed, mode="w") as archive:
                for name in sorted(self.members):
                    entry = tarfile.TarInfo(f"{folder}/{name}")  # owned by nobody, of no time
                    entry.size = len(self.members[name])
                    archive.addfile(entry, io.BytesIO(self.members[name]))
        os.replace(partial, path)


def _png_texts(data):
    """The bytes of a PNG's chunks that are not pixels."""
    at, texts = 8, []
    while at + 8 <= len(data):
        size, kind = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        if kind in (b"tEXt", b"zTXt", b"iTXt", b"eXIf"):
            texts.append(data[at + 8 : at + 8 + size])
        at += 12 + size
    return b"\n".join(texts)
