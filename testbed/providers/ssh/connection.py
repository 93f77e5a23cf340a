"""A connection to a machine: one SSH transport for everything, made again when it was lost.

A machine's key must be known beforehand, and what goes wrong is said in words: which machine, what was tried,
what to do. A machine that falls silent - switched off, unplugged - is noticed within ``SILENCE_SECONDS``, for
something is sent all the time, and what stays unacknowledged that long ends the connection.
"""

from __future__ import annotations

import logging
import socket
import threading
from contextlib import suppress
from ipaddress import AddressValueError, IPv4Address
from pathlib import Path

import paramiko

from testbed.providers.ssh.inventory import Machine

CONNECT_SECONDS = 30.0  # an emulated machine that has its hands full takes long to agree on keys
OPEN_SECONDS = 30.0
ALIVE_SECONDS = 3
SILENCE_SECONDS = 10.0

KNOWN_HOSTS = (Path("~/.ssh/known_hosts"), Path("/etc/ssh/ssh_known_hosts"))

# What it would log goes into our own errors.
logging.getLogger("paramiko").addHandler(logging.NullHandler())


class ConnectError(RuntimeError):
    """There is no way to a machine; the message says which, why, and what to do."""

    def __init__(self, machine: Machine, message: str) -> None:
        super().__init__(f"{machine.name}: {machine}: {message}")


class Connection:
    """The way to one machine.

    All commands share one transport. An sshd gives it a limited number of sessions (MaxSessions, 10 unless
    configured); when it refuses one more, there will be a second transport beside the first.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._clients: list[paramiko.SSHClient] = []
        self._lock = threading.Lock()

    def open(self) -> paramiko.Channel:
        """Return a new channel; connect first where that is necessary. Raises ConnectError."""
        tried = self._alive()
        if channel := next(filter(None, map(_session, tried)), None):
            return channel
        with self._lock:
            meanwhile = [client for client in self._alive() if client not in tried]
            if channel := next(filter(None, map(_session, meanwhile)), None):
                return channel
            client = connect(self.machine)
            self._clients = [*self._alive(), client]
        channel = _session(client)
        if channel is None:
            raise ConnectError(self.machine, "its sshd gives no session (MaxSessions in sshd_config?)")
        return channel

    def files(self) -> paramiko.SFTPClient:
        """Return a way to its files. Raises ConnectError."""
        channel = self.open()
        try:
            channel.invoke_subsystem("sftp")
            return paramiko.SFTPClient(channel)
        except (paramiko.SSHException, EOFError, OSError) as error:
            channel.close()
            raise ConnectError(self.machine, f"no SFTP (Subsystem in sshd_config): {error}") from None

    def peer_address(self) -> IPv4Address:
        """Return the address at which the machine is reached. Raises ConnectError."""
        channel = self.open()
        address = channel.getpeername()[0]
        channel.close()
        try:
            return IPv4Address(address)
        except AddressValueError:
            message = (
                f"it is reached at {address}, and between the nodes is IPv4: give it an underlay_address"
            )
            raise ConnectError(self.machine, message) from None

    def close(self) -> None:
        """End it, and all that goes over it."""
        for client in self._clients:
            client.close()
        self._clients = []

    def _alive(self) -> list[paramiko.SSHClient]:
        transports = ((client, client.get_transport()) for client in self._clients)
        return [client for client, transport in transports if transport is not None and transport.is_active()]


def connect(machine: Machine) -> paramiko.SSHClient:
    """Connect and log in. Raises ConnectError."""
    client = paramiko.SSHClient()
    client.set_missing_host_key_policy(_Refuse(machine))
    for file in [machine.known_hosts] if machine.known_hosts else KNOWN_HOSTS:
        if file.expanduser().exists():
            client.load_system_host_keys(str(file.expanduser()))
    if machine.key is not None and not machine.key.is_file():
        raise ConnectError(machine, f"there is no key {machine.key}")
    _log_in(client, machine)
    transport = client.get_transport()
    assert transport is not None
    transport.set_keepalive(ALIVE_SECONDS)
    return client


def _log_in(client: paramiko.SSHClient, machine: Machine) -> None:
    """Connect a client, which is closed if that fails. Raises ConnectError."""
    link = _reach(machine)
    own = machine.key is None and machine.password is None
    try:
        client.connect(
            machine.host,
            machine.port,
            machine.user,
            machine.password,
            key_filename=str(machine.key) if machine.key else None,
            look_for_keys=own,
            allow_agent=own,
            timeout=CONNECT_SECONDS,
            banner_timeout=CONNECT_SECONDS,
            auth_timeout=CONNECT_SECONDS,
            sock=link,
        )
    except BaseException as error:
        client.close()
        link.close()
        if isinstance(error, (paramiko.SSHException, EOFError, OSError)):
            raise ConnectError(machine, _in_words(machine, error)) from None
        raise


def lost(channel: paramiko.Channel) -> bool:
    """Tell whether a channel has ended because its connection did."""
    transport = channel.get_transport()
    # Channels are told a moment before the transport, which is a thread, has ended.
    if not transport.is_active():
        return True
    if channel.exit_status == -1:
        transport.join(0.5)
    return not transport.is_active()


class _Refuse(paramiko.MissingHostKeyPolicy):
    """Nobody is asked whether an unknown key is the right one: an experiment runs unattended."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        machine = self._machine
        raise ConnectError(
            machine,
            f"its host key is not known: {key.get_name()} {key.fingerprint}. If that is its key, keep it: "
            f"ssh-keyscan -p {machine.port} {machine.host} >>{machine.known_hosts or KNOWN_HOSTS[0]}",
        )


def _reach(machine: Machine) -> socket.socket:
    """Return a TCP connection to the machine."""
    try:
        link = socket.create_connection((machine.host, machine.port), CONNECT_SECONDS)
    except socket.gaierror as error:
        message = f"no address is known for this name ({error.strerror}); see ansible_host"
    except TimeoutError:
        message = f"timed out: no answer within {CONNECT_SECONDS:g} s"
    except ConnectionRefusedError:
        message = f"refused: nothing listens at port {machine.port}; is sshd running, and ansible_port right?"
    except OSError as error:
        message = f"unreachable: {error.strerror or error}"
    else:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(SILENCE_SECONDS * 1000))
        return link
    raise ConnectError(machine, message)


def _in_words(machine: Machine, error: Exception) -> str:
    match error:
        case paramiko.BadHostKeyException():
            name = machine.host if machine.port == 22 else f"[{machine.host}]:{machine.port}"
            file = machine.known_hosts or KNOWN_HOSTS[0]
            return (
                f"its host key has changed: it shows {error.key.fingerprint}, and {file} says "
                f"{error.expected_key.fingerprint}. If the machine was made anew, forget the old one: "
                f"ssh-keygen -R '{name}' -f {file}"
            )
        case paramiko.PasswordRequiredException():
            return f"the key {machine.key or ''} needs a passphrase: hand it to an ssh-agent (ssh-add)"
        case paramiko.AuthenticationException():
            shown = f"the key {machine.key}" if machine.key else "the agent's keys and those in ~/.ssh"
            tried = "the password" if machine.password and not machine.key else shown
            return f"it does not let {machine.user} in: {tried} was refused ({error})"
        case paramiko.SSHException() if "banner" in str(error) or "No existing session" in str(error):
            return f"timed out: port {machine.port} did not speak SSH within {CONNECT_SECONDS:g} s"
        case EOFError():
            return "it ended the connection before anybody was logged in"
        case _:
            return f"{error or type(error).__name__}"


def _session(client: paramiko.SSHClient) -> paramiko.Channel | None:
    """Return a new channel; None if there is none to be had."""
    transport = client.get_transport()
    if transport is not None:
        with suppress(paramiko.SSHException, EOFError, OSError):  # ChannelException among them: too many
            return transport.open_session(timeout=OPEN_SECONDS)
    return None
