from __future__ import annotations

from types import ModuleType

from invoke.context import Context
from invoke.tasks import task

from bench.command_line import collected


def test_a_dot_in_a_task_s_name_makes_a_part_of_the_command_line() -> None:
    module = ModuleType("tasks")

    @task(name="down")
    def take_down(_context: Context) -> None: ...

    @task(name="kubernetes.get")
    def get_kubernetes(_context: Context) -> None: ...

    @task(name="kubernetes.forget")
    def forget_kubernetes(_context: Context) -> None: ...

    vars(module).update(one=take_down, two=get_kubernetes, three=forget_kubernetes, four="no task")
    assert sorted(collected(module).task_names) == ["down", "kubernetes.forget", "kubernetes.get"]


def test_a_task_may_have_the_name_of_a_part() -> None:
    module = ModuleType("tasks")

    @task
    def test(_context: Context) -> None: ...

    @task(name="test.e2e")
    def test_e2e(context: Context) -> None: ...

    vars(module).update(one=test, two=test_e2e)
    assert collected(module)["test"] is test
    assert collected(module)["test.e2e"] is test_e2e
