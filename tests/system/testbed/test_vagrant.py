"""The Vagrantfile, as Vagrant with its plugin for libvirt reads it; no machine is made."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from testbed.providers.vagrant import machines
from testbed.scenario import Scenario, load
from testbed.scenario.addressing import Addressing
from tests.paths import ROOT

SCENARIOS = sorted([*ROOT.glob("scenarios/*.yaml"), *ROOT.glob("scenarios/examples/*.yaml")])
# Instead of Vagrant, something that writes down what the Vagrantfile asks for.
LISTENER = """
require "json"

ASKED = Hash.new { |machines, name| machines[name] = {} }

class Listener
  def initialize(name = nil)
    @name = name
  end

  def vm
    self
  end

  def define(name)
    yield Listener.new(name)
  end

  def network(_kind, ip:, netmask:, **)
    ASKED[@name]["address"] = "#{ip}/#{netmask}"
  end

  def provider(_kind)
    yield Listener.new(@name)
  end

  def method_missing(name, *values, **)
    key = name.to_s.delete_suffix("=")
    ASKED[@name][key] = values.first if @name && %w[cpus memory hostname shares].include?(key)
  end

  def respond_to_missing?(*)
    true
  end
end

module Vagrant
  def self.configure(_version)
    yield Listener.new
  end
end

load ARGV.first
puts JSON.generate(ASKED)
"""


def environment(directory: Path, scenario: Path, **more: str) -> dict[str, str]:
    mine = {
        name: value for name, value in os.environ.items() if not name.startswith(("CONCORDE_", "VAGRANT_"))
    }
    return mine | {
        "VAGRANT_DOTFILE_PATH": str(directory / "state"),
        "VAGRANT_HOME": str(directory / "home"),
        "VAGRANT_CHECKPOINT_DISABLE": "1",
        "CONCORDE_SCENARIO": str(scenario),
        **more,
    }


@pytest.fixture(scope="module")
def vagrant() -> str:
    program = shutil.which("vagrant")
    if program is None:
        pytest.skip("vagrant is not installed: apt-get install vagrant vagrant-libvirt")
    return program


@pytest.mark.long(one_in=16)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda file: file.stem)
def test_vagrant_takes_the_machines_of_every_scenario(scenario: Path, vagrant: str, tmp_path: Path) -> None:
    told = environment(tmp_path, scenario, VAGRANT_DEFAULT_PROVIDER="libvirt", CONCORDE_DRIVER="qemu")
    done = subprocess.run(
        [vagrant, "validate"], cwd=ROOT, env=told, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_vagrant_refuses_a_scenario_that_there_is_not(vagrant: str, tmp_path: Path) -> None:
    told = environment(tmp_path, Path("nothing"))
    done = subprocess.run(
        [vagrant, "validate"], cwd=ROOT, env=told, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert 'CONCORDE_SCENARIO: no scenario "nothing"' in done.stderr


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda file: file.stem)
@pytest.mark.long(one_in=12)
def test_a_scenario_alone_makes_the_machines_that_the_provider_expects(
    scenario: Path, tmp_path: Path
) -> None:
    """What Vagrant makes by itself has the addresses by which the provider would find it."""
    wanted = load(scenario)
    described = tmp_path / "machines.yaml"
    described.write_text(machines.machines(wanted))
    assert asked_for(scenario, tmp_path) == asked_for(described, tmp_path)
    assert asked_for(scenario, tmp_path) == {
        name: {
            "hostname": name,
            "address": address.with_netmask,
            **(wanted.nodes[name].machine or wanted.machine).model_dump(),
            "shares": 512 if name in idle_masters(wanted) else None,
        }
        for name, address in Addressing(wanted).nodes.items()
    }


def idle_masters(scenario: Scenario) -> set[str]:
    """Return the masters without pods."""
    masters = {cluster.master for cluster in scenario.clusters.values()}
    return masters - {worker for cluster in scenario.clusters.values() for worker in cluster.workers}


def test_the_environment_says_how_large_all_machines_are(tmp_path: Path) -> None:
    found = asked_for(ROOT / "scenarios/paper-vms.yaml", tmp_path, CONCORDE_CPUS="1", CONCORDE_MEMORY="768")
    assert {(machine["cpus"], machine["memory"]) for machine in found.values()} == {(1, 768)}


def asked_for(scenario: Path, directory: Path, **more: str) -> dict[str, dict[str, object]]:
    """Return of each machine what the Vagrantfile asks for."""
    if shutil.which("ruby") is None:
        pytest.skip("ruby is not installed: apt-get install vagrant")
    listener = directory / "listener.rb"
    listener.write_text(LISTENER)
    done = subprocess.run(
        ["ruby", str(listener), str(ROOT / "Vagrantfile")],
        env=environment(directory, scenario, **more), capture_output=True, text=True, check=True,
    )  # fmt: skip
    found: dict[str, dict[str, object]] = json.loads(done.stdout)
    return found
