"""connect: the executor of a running cluster. Nothing here starts a cluster, except where Ray or Spark is asked to."""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from cutsvm._utils.errors import ClusterError
from cutsvm.cluster.local import Local
from cutsvm.cluster.protocol import Executor

__all__ = ["connect", "current_executor"]


@dataclass(frozen=True)
class ConnectSettings:
    """timeout: seconds in which the scheduler must answer."""

    timeout: float = 10.0


def connect(address: Any = None, engine: str = "dask", **options: Any) -> Executor:
    """The executor of a cluster that is running; as a context manager it is closed at the end, the cluster is not.

    Parameters
    ----------
    address : str, client or cluster, default=None
        Dask: `tcp://host:8786`, a `Client` or a cluster object; by default the client that is in use.
        Ray: `ray://host:10001`, `host:6379` or "auto"; by default what `ray.init()` finds, or Ray on this machine.
        Spark: a `SparkSession`, or a master such as `spark://host:7077`; by default the session in use, or a new one
        with the settings of `spark-submit`.
    engine : {"dask", "ray", "spark", "local"}, default="dask"
        "local": threads of this process; there is no address.
    **options
        Of Dask's `Client` (such as `scheduler_file`, `security`), of `ray.init`, of Spark's configuration
        (`{"spark.executor.memory": "4g"}`), of `Local` (`n_jobs`).

    Returns
    -------
    Executor

    Raises
    ------
    ClusterError
        If nothing answers at the address, or a worker runs another version of cutsvm.
    """
    if engine not in _ENGINES:
        raise ValueError(f"engine: one of {', '.join(map(repr, _ENGINES))} expected, got {engine!r}")
    return _ENGINES[engine](address, options)


def current_executor(engine: str = "dask") -> Executor | None:
    """The executor of the cluster that this process uses already; None if there is none. Imports no engine."""
    if engine == "dask" and "distributed" in sys.modules:
        client = _current_client()
        return None if client is None else _dask(client, {})
    if engine == "ray" and "ray" in sys.modules and sys.modules["ray"].is_initialized():
        return _ray(None, {})
    if engine == "spark" and "pyspark.sql" in sys.modules:
        session = sys.modules["pyspark.sql"].SparkSession.getActiveSession()
        return None if session is None else _spark(session, {})
    return None


def _import(name: str, extra: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "cutsvm":
            raise
        raise ImportError(f"engine={extra!r} needs {error.name}: pip install 'cutsvm[{extra}]'") from None


def _local(address: Any, options: Mapping[str, Any]) -> Executor:
    if address is not None:
        raise ValueError(f"engine='local' has no address, got {address!r}")
    return Local(**options)


def _current_client() -> Any:
    try:
        return sys.modules["distributed"].Client.current()
    except ValueError:
        return None


def _dask(address: Any, options: Mapping[str, Any]) -> Executor:
    adapter, distributed = _import("cutsvm.cluster.dask", "dask"), _import("distributed", "dask")
    if isinstance(address, distributed.Client):
        executor: Executor = adapter.Dask(address)
    elif address is None and not options:
        client = _current_client()
        if client is None:
            raise ClusterError(
                "no Dask client is in use: name the scheduler, such as connect('tcp://host:8786'), or make a "
                "distributed.Client first; a cluster on this machine is distributed.Client(distributed.LocalCluster())"
            )
        executor = adapter.Dask(client)
    else:
        _check_dask_address(address)
        given = {"timeout": ConnectSettings().timeout, "set_as_default": False, **options}
        try:
            executor = adapter.Dask(distributed.Client(address, **given), owned=True)
        except (OSError, TimeoutError) as error:
            raise ClusterError(
                f"{address or options}: no Dask scheduler answers there within {given['timeout']:g} s ({error}); "
                "check the address, and that `dask scheduler` is running and can be reached from here"
            ) from None
    return _checked(executor)


def _check_dask_address(address: Any) -> None:
    """Raises for text that is no address, before there is a client, which would not go away quietly."""
    if not isinstance(address, str):
        return
    try:
        scheme, place = import_module("distributed.comm.addressing").parse_address(address)
        import_module("distributed.comm.registry").get_backend(scheme)
        if scheme in ("tcp", "tls"):
            import_module("distributed.comm.addressing").parse_host_port(place)
    except ValueError as error:
        raise ClusterError(
            f"{address!r} is no address of a Dask scheduler ({error}); expected one as tcp://host:8786"
        ) from None


def _checked(executor: Executor) -> Executor:
    try:
        executor.check()
    except BaseException:
        executor.close()
        raise
    return executor


def _knock(address: Any, what: str) -> None:
    """Raises if nothing listens at host:port, which Ray and Spark take minutes to say."""
    found = re.fullmatch(r"(?:ray://|spark://)?([\w.-]+):(\d+)", address) if isinstance(address, str) else None
    if found:
        try:
            socket.create_connection((found[1], int(found[2])), ConnectSettings().timeout).close()
        except OSError as error:
            raise ClusterError(
                f"{address}: no {what} answers there ({error}); check the address, and that it can be reached from here"
            ) from None


def _ray(address: Any, options: Mapping[str, Any]) -> Executor:
    adapter, ray = _import("cutsvm.cluster.ray", "ray"), _import("ray", "ray")
    owned = not ray.is_initialized()
    if owned:
        _knock(address, "Ray cluster")
        try:
            ray.init(address=address, **options)
        except (OSError, RuntimeError) as error:
            raise ClusterError(
                f"{address}: no Ray cluster answers there ({error}); check the address, and that "
                "`ray start --head` runs"
            ) from None
    elif address is not None or options:
        raise ClusterError("this process is connected to a Ray cluster already: leave out the address and options")
    return _checked(adapter.Ray(owned=owned))


def _spark(address: Any, options: Mapping[str, Any]) -> Executor:
    adapter, sql = _import("cutsvm.cluster.spark", "spark"), _import("pyspark.sql", "spark")
    if address is not None and not isinstance(address, str):
        return _checked(adapter.Spark(address))
    session = sql.SparkSession.getActiveSession()
    owned = session is None
    if owned:
        _knock(address, "Spark master")
        builder = sql.SparkSession.builder if address is None else sql.SparkSession.builder.master(address)
        try:
            session = builder.appName("cutsvm").config(map=dict(options)).getOrCreate()
        except (adapter.Py4JError, adapter.PySparkException) as error:
            raise ClusterError(
                f"Spark does not start ({error}); check the master, and that Java is installed"
            ) from None
    elif address is not None or options:
        raise ClusterError("this process has a Spark session already: leave out the address and options")
    return _checked(adapter.Spark(session, owned=owned))


_ENGINES: dict[str, Callable[[Any, Mapping[str, Any]], Executor]] = {
    "dask": _dask,
    "ray": _ray,
    "spark": _spark,
    "local": _local,
}
