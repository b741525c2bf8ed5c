"""Reads settings from the environment, and refuses what is not exactly a value of theirs.

A secret that is not given is made, so that the embedded default is safe to run as it is.

A setting that is read as another one, or not at all, is found out in an incident. So every value is
read whole or refused with one line that names the variable and what to write.
"""

from __future__ import annotations

import difflib
import os
import re
import secrets
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import SplitResult, parse_qsl, urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured
from environ.fileaware_mapping import FileAwareMapping

_NUMBER: Final = re.compile(r"[0-9]{1,15}(\.[0-9]{1,9})?")
_DURATION: Final = re.compile(r"(?P<number>[0-9]{1,15}(?:\.[0-9]{1,9})?)(?P<unit>ms|[smhd])")
_SECONDS_OF: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_SECONDS_OF_NAME: Final = {"_SECONDS": 1.0, "_HOURS": 3600.0}
"""What a number without a unit is, by the end of the setting's name."""
_TRUE: Final = frozenset({"true", "1", "yes", "on"})
_FALSE: Final = frozenset({"false", "0", "no", "off"})
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_ORIGIN: Final = re.compile(
    r"https?://(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?|\[[0-9a-f:.]{2,45}\])(?::[0-9]{1,5})?"
)
_HOST: Final = re.compile(
    r"\*|\.?[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?|\[[0-9a-f:.]{2,45}\]", re.IGNORECASE
)
_CURRENCY: Final = re.compile(r"[A-Z]{3}")
_LARGEST: Final = 1e9
"""The largest number of a setting without a bound of its own: 31 years in seconds, so that the clock
can be added to it."""
_LARGEST_LIMIT: Final = 2_147_483_647
"""What a column for a limit holds."""
_TAILS: Final = {
    **dict.fromkeys(("redis", "rediss"), "/NUMBER"),
    **dict.fromkeys(("smtp", "smtps", "smtp+tls", "smtp+ssl"), ""),
}
"""What follows the port in addresses of servers, by scheme."""
_REDIS_NUMBERS: Final = re.compile(
    r"db|health_check_interval|max_connections|protocol|((socket_)?(connect_)?timeout)"
)
"""Parameters in an address of Redis that are numbers; redis-py takes ``nan`` and ``inf`` for some."""
_OWN: Final = "SVC_"
_FILE: Final = "_FILE"
_OF_OTHERS: Final = re.compile(
    r"SVC_(TEST_\w+|KEY|API_KEY|READ_KEY|SPEECH_KEY|TTS_WS_URL|VOICE"
    r"|(\w+_)?(SERVICE_(HOST|PORT)(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?))"
)
"""Variables of the prefix that are no settings: of the test suite, of clients in the documentation,
and those that Kubernetes gives every container where a Service is called svc or svc-..."""
_KUBERNETES_PORT: Final = re.compile(r"SVC_(\w+_)?PORT=(tcp|udp|sctp)://.+")
"""Kubernetes sets this one too. With another value it is a misspelt setting."""


class _Values(FileAwareMapping):  # type: ignore[misc]  # the library has no types
    """Values of variables, or of the files that ``NAME_FILE`` names, without the last line end.

    Programs that write a file end its last line; the library would take that end for a part of the
    value.
    """

    def __getitem__(self, name: str) -> str:
        try:
            value: str = super().__getitem__(name)
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8"
            raise ImproperlyConfigured(
                f"{name}{_FILE} names a file that cannot be read: {reason}."
            ) from None
        return value[: len(value) - len(self._line_end(name, value))]

    def _line_end(self, name: str, value: str) -> str:
        if not self.env.get(name + _FILE):
            return ""
        return value[len(value.removesuffix("\n").removesuffix("\r")) :]

    def lost_line_end(self, name: str) -> str:
        """The last line end of the file that ``NAME_FILE`` names; "" without one."""
        return self._line_end(name, super().__getitem__(name)) if name in self else ""


class SettingsEnv(environ.FileAwareEnv):  # type: ignore[misc]
    """Reads variables for the settings.

    ``defaults`` has the value of each variable that is not given, as an operator would write it; "" where
    there is none. Every method raises ``ImproperlyConfigured`` with a message that names the variable.
    """

    ENVIRON = _Values(cache=False)

    def __init__(self, defaults: Mapping[str, str] = MappingProxyType({})) -> None:
        super().__init__()
        self._defaults = defaults

    def get_value(self, var: str, *arguments: Any, **options: Any) -> Any:
        self._given(var)
        if var in self._defaults:
            options |= {"default": self._defaults[var], "parse_default": True}
        return super().get_value(var, *arguments, **options)

    def secrets(self, var: str) -> list[str]:
        """Comma-separated secrets, of which the first makes what is new, and all verify and open.

        Up to release 0.5 the line end of a file was part of its last secret, so what was made with that one
        is still verified and opened.
        """
        found: list[str] = self.list(var)
        end = self.ENVIRON.lost_line_end(var)
        return [*found, found[-1] + end] if found and end else found

    def flag(self, var: str) -> bool:
        given = self._plain(var)
        if given.lower() not in _TRUE | _FALSE:
            raise ImproperlyConfigured(f"{var} must be true or false, not {given!r}.")
        return given.lower() in _TRUE

    def whole(
        self,
        var: str,
        least: int = 0,
        most: int | None = None,
        default: int | None = None,
        *,
        or_zero: bool = False,
    ) -> int:
        """A whole number from ``least`` to ``most``; ``default`` where the table has none; with ``or_zero``
        also 0, which switches something off."""
        given = self._plain(var) or str(default)
        if not _NUMBER.fullmatch(given) or "." in given:
            raise ImproperlyConfigured(f"{var} must be a whole number, not {given!r}.")
        if or_zero and int(given) < least and int(given) != 0:
            raise ImproperlyConfigured(f"{var} must be 0, or at least {least}.")
        return int(given) if or_zero else int(_within(var, int(given), least, most))

    def given_by_svc(self, var: str) -> int:
        """A number that the parent of the workers sets for each; 0 without one."""
        given = os.environ.get(var, "0")
        if not (given.isascii() and given.isdigit()):
            raise ImproperlyConfigured(f"{var} is set by svc for its own processes. Take it out.")
        return int(given)

    def number(
        self, var: str, least: float = 0.0, most: float | None = None, *, or_zero: bool = False
    ) -> float:
        """A number from ``least`` to ``most``; with ``or_zero`` also 0, which switches something off.

        A duration, which the end of the setting's name tells, may have a unit: ``50ms``, ``2m``. It is
        given back in the unit of the name.
        """
        given = self._plain(var)
        unit = next((each for name, each in _SECONDS_OF_NAME.items() if var.endswith(name)), 0.0)
        if unit and (found := _DURATION.fullmatch(given)):
            value = float(found["number"]) * _SECONDS_OF[found["unit"]] / unit
        elif _NUMBER.fullmatch(given):
            value = float(given)
        else:
            units = ", or with a unit: 50ms, 90s, 2m, 1h, 1d" if unit else " and without a unit"
            raise ImproperlyConfigured(
                f"{var} must be a number in plain digits{units}; not {given!r}."
            )
        if or_zero and value < least and value != 0:
            raise ImproperlyConfigured(f"{var} must be 0, or at least {least:g}.")
        if not or_zero:
            value = _within(var, value, least, most)
        if value > _LARGEST:
            raise ImproperlyConfigured(f"{var} must be at most {_LARGEST:.0f}.")
        return value

    def one_of(self, var: str, choices: Collection[str]) -> str:
        value = str(self.str(var))
        if value not in choices:
            raise ImproperlyConfigured(f"{var} must be one of {', '.join(choices)}.")
        return value

    def currency(self, var: str) -> str:
        """A currency by ISO 4217, in its form: no table of those that exist is kept."""
        value = str(self.str(var))
        if not _CURRENCY.fullmatch(value):
            raise ImproperlyConfigured(
                f"{var} must be the three capital letters of ISO 4217, such as USD."
            )
        return value

    def bearer(self, var: str) -> str:
        """A token that clients send in a header, which carries no blanks at its ends."""
        value = str(self.str(var))
        if value != value.strip():
            raise ImproperlyConfigured(
                f"{var} begins or ends with a blank, which no client can send. Take it out."
            )
        return value

    def sender(self, var: str) -> str:
        """The sender of mails: ``NAME@HOST``, or ``WORDS <NAME@HOST>``."""
        value = str(self.str(var))
        named = value.endswith(">")
        mailbox = value.removesuffix(">").partition(" <")[2] if named else value
        user, _, host = mailbox.partition("@")
        if not user or not host or set(user + host) & set(" <>@"):
            raise ImproperlyConfigured(
                f"{var} must be svc@example.com, or Acme <svc@example.com>, not {value!r}."
            )
        return value

    def hosts(self, var: str, *, needed: bool = False) -> list[str]:
        """Names of hosts in lower case, comma-separated: ``NAME``, ``.NAME``, ``[IPv6]`` or ``*``."""
        found = [host for each in str(self.str(var)).split(",") if (host := each.strip())]
        if needed and not found:
            raise ImproperlyConfigured(
                f"{var} names no host, so every request would get 400. Name one, or do not set it."
            )
        for host in found:
            if not _HOST.fullmatch(host):
                raise ImproperlyConfigured(
                    f"{var} must be names of hosts, of letters, digits, dots and hyphens (IPv6 in "
                    f"brackets), without a scheme, a port or a path, separated by commas, not {host!r}."
                )
        return [host.lower() for host in found]

    def limit(self, name: str, most: int = _LARGEST_LIMIT) -> int | None:
        """A positive whole number up to ``most``; None for ``unlimited``."""
        value = str(self.str(name))
        if value == "unlimited":
            return None
        if not _NUMBER.fullmatch(value) or not value.isdigit() or int(value) < 1:
            raise ImproperlyConfigured(f'{name} must be a positive whole number or "unlimited".')
        if int(value) > most:
            raise ImproperlyConfigured(f'{name} must be at most {most}, or "unlimited".')
        return int(value)

    def origin(self, name: str) -> str:
        """The address of a site, ``https://NAME`` or ``http://NAME:PORT``; "" when it is not given."""
        value = (self._given(name) or "").strip().removesuffix("/").lower()
        if value and not (_ORIGIN.fullmatch(value) and _has_port(urlsplit(value))):
            raise ImproperlyConfigured(
                f"{name} must be the address of this gateway, with http:// or https:// and without "
                "a path: https://ai.example.com."
            )
        return value

    def address(self, var: str, schemes: Collection[str], default: str = "") -> str:
        """An address with one of ``schemes``; ``default`` where none is given, which may be empty.

        Of Redis and mail servers the host, the port and the number of a database are checked too;
        ``database.address`` checks databases.
        """
        value = self._given(var) or default
        scheme = value.partition("://")[0]
        if value and scheme not in schemes:
            raise ImproperlyConfigured(
                f"{var} must begin with {' or '.join(f'{scheme}://' for scheme in schemes)}."
            )
        if scheme in _TAILS and not _names_server(value):
            raise ImproperlyConfigured(
                f"{var} must have the form {scheme}://USER:PASSWORD@HOST:PORT{_TAILS[scheme]}, with a "
                "port from 1 to 65535. USER, PASSWORD and what follows HOST may be left out; write "
                "# / ? @ in a password as %23 %2F %3F %40."
            )
        if scheme in ("redis", "rediss", "unix") and (wrong := _first_no_number(value)):
            raise ImproperlyConfigured(
                f"{var}: {wrong} in the address must be a number in plain digits."
            )
        if value == "unix://":
            raise ImproperlyConfigured(f"{var} must have the form unix:///PATH of a socket.")
        return value

    def path(self, var: str, default: Path) -> Path:
        """A whole path: another one would lead elsewhere from each directory, and no shell expands ``~``."""
        path = Path(self._given(var) or default)
        if not path.is_absolute():
            raise ImproperlyConfigured(
                f"{var} must be a whole path, which begins with /, not {str(path)!r}."
            )
        return path

    def directory(self, var: str, default: Path) -> Path:
        """A directory of this user alone that can be written to; it is made where it is missing."""
        path = self.path(var, default)
        try:
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise ImproperlyConfigured(
                f"{var}: {path} cannot be made a directory: {error.strerror}."
            ) from None
        if not os.access(path, os.W_OK | os.X_OK):
            raise ImproperlyConfigured(f"{var}: {path} cannot be written to by this user.")
        return path

    def _given(self, var: str) -> str | None:
        """The value as it stands in the environment or the file; None when it is not set."""
        value: str | None = self.ENVIRON.get(var)
        if value is not None and _KUBERNETES_PORT.fullmatch(f"{var}={value}"):
            return None  # of a Service called svc-speech
        if value is not None and _CONTROL.search(value):
            raise ImproperlyConfigured(
                f"{var} holds a line end or another control character. Take it out."
            )
        if value and not value.replace(",", "").strip():
            raise ImproperlyConfigured(
                f"{var} holds only blanks or commas. Give it a value, or do not set it."
            )
        return value

    def _plain(self, var: str) -> str:
        """The value without spaces around it, or the default. Other blanks, such as a no-break space that was
        pasted, are no part of a value; they are refused with it."""
        value = self._given(var)
        if value == "":
            raise ImproperlyConfigured(f"{var} is empty. Give it a value, or do not set it.")
        return self._defaults[var] if value is None else value.strip(" ")


def _within(var: str, value: float, least: float, most: float | None) -> float:
    if value < least or (most is not None and value > most):
        span = f"at least {least:g}" if most is None else f"from {least:g} to {most:.15g}"
        raise ImproperlyConfigured(f"{var} must be {span}.")
    return value


def _names_server(value: str) -> bool:
    """Whether an address has a host, a port that exists, and nothing but a number as its path."""
    try:
        parts = urlsplit(value)
    except ValueError:  # of brackets that hold no address
        return False
    # redis-py takes localhost where there is no host.
    is_named = bool(parts.hostname) or (parts.scheme == "redis" and parts.path.strip("/"))
    return bool(is_named) and _has_port(parts) and not parts.path.strip("/0123456789")


def _first_no_number(value: str) -> str | None:
    """The first parameter in an address of Redis that should be a number, and is none."""
    for name, given in parse_qsl(urlsplit(value).query, keep_blank_values=True):
        if _REDIS_NUMBERS.fullmatch(name) and not _NUMBER.fullmatch(given):
            return f"{name}={given}"
    return None


def _has_port(parts: SplitResult) -> bool:
    """Whether the port can be connected to; one that is left out can."""
    try:
        return parts.port != 0
    except ValueError:
        return False


def refuse_unknown(
    variables: Mapping[str, str],
    known: Collection[str],
    free_prefix: str,
    removed: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Refuse names with the prefix of the settings that are none, as misspelt ones are.

    ``free_prefix``: what names begin with that operators choose. ``removed``: settings of earlier
    releases, which are accepted, with what replaces each. Raises ``ImproperlyConfigured``.
    """
    for name in sorted(variables):
        plain = name.removesuffix(_FILE)
        if (
            not name.startswith(_OWN)
            or plain in known
            or plain in removed
            or name.startswith(free_prefix)
            or _is_of_others(name, variables[name])
        ):
            continue
        near = difflib.get_close_matches(plain, [*known, *removed], n=1, cutoff=0.0)[0]
        nearest = (
            f"The nearest one, {near}, was one: {removed[near]} All"
            if near in removed
            else f"The nearest one is {near}; all"
        )
        raise ImproperlyConfigured(f"{name} is no setting. {nearest} are in docs/settings.md.")


def _is_of_others(name: str, value: str) -> bool:
    return bool(_OF_OTHERS.fullmatch(name) or _KUBERNETES_PORT.fullmatch(f"{name}={value}"))


def state_directory() -> Path:
    """The directory of svc among those where this user's programs keep data (XDG Base Directory 0.8)."""
    # A user without a home, such as a number that a container runs as, has that of services.
    home = os.path.expanduser("~")  # pathlib's raises where there is none
    own = "/var/lib" if home == "~" else f"{home}/.local/state"
    return Path(os.environ.get("XDG_STATE_HOME") or own) / "svc"


def made_once(path: Path) -> str:
    """Return the secret in ``path``, which is made by the first process that asks for it.

    With more than one host every host must be given the same value instead.
    """
    if not path.exists():
        unnamed = Path(f"{path}.{os.getpid()}")
        descriptor = os.open(unnamed, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(48))
        try:
            os.link(unnamed, path)
        except FileExistsError:
            pass
        finally:
            unnamed.unlink()
    return path.read_text(encoding="utf-8").strip()
