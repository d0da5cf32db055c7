"""``ondam doctor``: the service, and who may use the system's daemon."""

from __future__ import annotations

import grp
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from ondam.cli.finding import Finding
from ondam.deploy.service import Service, user_name
from ondam.messages import Phrase
from ondam.places import GROUP, MACHINE_RUNTIME


def service(
    own: Service | None = None, system: Service | None = None, runtime: Path = MACHINE_RUNTIME
) -> Iterator[Finding]:
    """Units of another version, units that start what is not there, no lingering, a group one is not in.

    Nothing where there is no unit: whoever starts Ondam by hand lacks nothing.
    """
    if sys.platform != "linux":
        return
    for one in (own or Service("user"), system or Service("system")):
        yield from _unit(one)
    if runtime.is_dir() and os.geteuid() != 0:
        yield from _group()


def _unit(service: Service) -> Iterator[Finding]:
    there = service.installed()
    if there is None:
        return
    facts = {"path": service.path, "command": service.command("install")}
    if not there.ours:
        yield Finding.told("service", True, Phrase("doctor_service_foreign", **facts))
    elif there.program is None or not os.access(there.program, os.X_OK):
        yield Finding.told("service", False, Phrase("doctor_service_gone", program=there.program, **facts))
    elif not there.current:
        facts |= {"version": there.version}
        yield Finding.told("service", False, Phrase("doctor_service_other", **facts))
    else:
        yield Finding.told("service", True, Phrase("doctor_service_current", **facts))
    if service.scope == "user" and service.running and not service.lingers():
        # No fault: on a desktop nobody misses it before the login.
        yield Finding.told("service", True, Phrase("service_ends_at_logout", user=user_name()))


def _group() -> Iterator[Finding]:
    try:
        group = grp.getgrnam(GROUP)
    except KeyError:
        return
    user = user_name()
    if group.gr_gid in os.getgroups():
        yield Finding.told("service", True, Phrase("doctor_group_member", group=GROUP))
    elif user in group.gr_mem:
        yield Finding.told("service", False, Phrase("doctor_group_later", group=GROUP))
    else:
        yield Finding.told("service", False, Phrase("doctor_group_stranger", group=GROUP, user=user))
