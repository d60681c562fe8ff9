#!/usr/bin/env python3
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
"""For each routine of the API description and each of its arguments that can be wrong in a way the standard has an error
class for: a call, in a world of one, with that argument wrong and all others right, in a process of its own. What class each
kind of argument has is stated here, apart from the tables that the library's checks are made of."""
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
TOP = os.environ["top_srcdir"]
BUILD = os.environ["top_builddir"]
sys.path.insert(0, os.path.join(TOP, "ompi", "mpi", "api"))
import model  # noqa: E402

# A null handle that goes in (MPI-5.0, section 9.4).
HANDLES = {"COMMUNICATOR": ("MPI_COMM_NULL", "MPI_ERR_COMM"), "GROUP": ("MPI_GROUP_NULL", "MPI_ERR_GROUP"),
           "DATATYPE": ("MPI_DATATYPE_NULL", "MPI_ERR_TYPE"), "OPERATION": ("MPI_OP_NULL", "MPI_ERR_OP"),
           "REQUEST": ("MPI_REQUEST_NULL", "MPI_ERR_REQUEST"), "ERRHANDLER": ("MPI_ERRHANDLER_NULL", "MPI_ERR_ERRHANDLER"),
           "SESSION": ("MPI_SESSION_NULL", "MPI_ERR_SESSION"), "WINDOW": ("MPI_WIN_NULL", "MPI_ERR_WIN"),
           "FILE": ("MPI_FILE_NULL", "MPI_ERR_FILE"), "MESSAGE": ("MPI_MESSAGE_NULL", "MPI_ERR_REQUEST"),
           "INFO": ("MPI_INFO_NULL", "MPI_ERR_INFO")}
COUNTS = ("POLYXFER_NUM_ELEM_NNI", "POLYDTYPE_NUM_ELEM_NNI", "XFER_NUM_ELEM_NNI")
LENGTHS = ("ARRAY_LENGTH", "ARRAY_LENGTH_NNI", "POLYNUM_BYTES_NNI")
# The C types of handles that are right, and where they are.
RIGHT = {"MPI_Comm": "comm", "MPI_Group": "group", "MPI_Datatype": "MPI_INT", "MPI_Op": "MPI_SUM", "MPI_Request": "request",
         "MPI_Errhandler": "MPI_ERRORS_RETURN", "MPI_Session": "session", "MPI_Win": "MPI_WIN_NULL",
         "MPI_File": "MPI_FILE_NULL", "MPI_Message": "MPI_MESSAGE_NO_PROC", "MPI_Info": "info"}

# Not called: they end or start MPI, take no wrong argument, or are not about arguments.
LEFT_OUT = re.compile(r"MPI_(T_|Init|Init_thread|Finalize|Abort|Pcontrol|Wtime|Wtick|Aint_|Register_datarep)|_(to|from)int$")
# Arguments that may be null, or are not looked at.
ALLOWED = re.compile(r"""^(
    MPI_(Wait|Test|Request_get_status|Parrived):request     # the null request is complete
  | MPI_\w+_get_name:\w+                                    # the null handle has a name
  | MPI_Status_\w+:.* | MPI_Buffer_\w+:.* | MPI_Session_(at|de)tach_buffer:.* | MPI_Comm_(at|de)tach_buffer:.*
  | MPI_Info_create_env:.*                                  # no arguments at all are fine
  | MPI_File_\w+errhandler:\w+                              # of the null file: the default's
  | MPI_(Cart_coords|Graph_neighbors(_count)?):rank         # that there is no topology is worse
  | MPI_Info_get_string:value | MPI_Session_get_nth_pset:pset_name  # where there is no room, none is needed
)$""", re.VERBOSE)
# Hints are needed where they are what the routine is about.
INFO_NEEDED = re.compile(r"MPI_(Info_\w+|Comm_set_info)$")

HEAD = """\
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static long long room[4096], more[4096], zeros[64];
static MPI_Comm comm;
static MPI_Group group;
static MPI_Session session;
static MPI_Info info;
static MPI_Request request;
static int count, failed;
static void report(int status, int wanted, const char *what)
{
    const int got = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    count++;
    if (got != wanted) {
        failed++;
        printf("# %s: class %d, not %d\\n", what, got, wanted);
    }
}
#define TRY(wanted, what, call)                     \\
    do {                                            \\
        int status_ = 0;                            \\
        pid_t pid_ = fork();                        \\
        if (pid_ == 0) {                            \\
            int class_ = 0, rc_;                    \\
            alarm(10);                              \\
            rc_ = (call);                           \\
            MPI_Error_class(rc_, &class_);          \\
            _exit(class_);                          \\
        }                                           \\
        waitpid(pid_, &status_, 0);                 \\
        report(status_, wanted, what);              \\
    } while (0)
"""

MAIN = """\
int main(void)
{
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_group(comm, &group);
    MPI_Info_create(&info);
    MPI_Send_init(room, 1, MPI_INT, MPI_PROC_NULL, 0, comm, &request);
%s
    MPI_Request_free(&request);
    MPI_Info_free(&info);
    MPI_Group_free(&group);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    MPI_Session_finalize(&session);
    printf("%%s 1 - %%d calls with a wrong argument have their class\\n1..1\\n", failed ? "not ok" : "ok", count);
    return failed ? 1 : 0;
}
"""


def place(p, wide):
    """Room for what a pointer leads to, of the pointer's type."""
    ctype = p.ctype(wide).rstrip("*").strip()
    stars = "*" * (p.ctype(wide).count("*") + (1 if p.array else 0))
    store = "more" if p.name in ("recvbuf", "resultbuf") else "zeros" if p.dir == "in" and p.kind != "BUFFER" else "room"
    return f"({ctype} {stars}) (void *) {store}"


def right(p, wide):
    ctype = p.ctype(wide)
    base = ctype.replace("const ", "").replace("*", "").strip()
    if base in RIGHT and not p.array and p.dir != "out":
        return f"&({base}) {{{RIGHT[base]}}}" if ctype.endswith("*") else RIGHT[base]
    if p.kind == "STRING" and p.dir == "in":
        return '"native"'
    if p.kind in ("FUNCTION", "FUNCTION_SMALL", "POLYFUNCTION"):
        return "NULL"
    if p.array or ctype.endswith("*"):
        return place(p, wide)
    if p.kind in COUNTS or p.kind in LENGTHS or p.kind.startswith("ARRAY_LENGTH"):
        return "1"
    return "0"


def wrong(routine, p):
    """(expression, class) where the argument can be wrong, or None."""
    pointer = p.type.endswith("*")
    if p.dir == "out":
        needs = pointer and not p.array and p.kind not in ("STATUS", "BUFFER")
        return ("NULL", "MPI_ERR_ARG") if needs else None
    if p.array:
        return None
    if p.kind in HANDLES:
        if p.kind == "INFO" and not INFO_NEEDED.match(routine.name):
            return None
        null, error = HANDLES[p.kind]
        ctype = p.type.replace("*", "").strip()
        return (f"&({ctype}) {{{null}}}" if pointer else null), error
    if pointer:
        return ("&(int) {MPI_KEYVAL_INVALID}", "MPI_ERR_KEYVAL") if p.kind == "KEYVAL" else None
    if p.kind in COUNTS and p.name != "stride":
        return "-1", "MPI_ERR_COUNT"
    if p.kind == "KEYVAL":
        return "MPI_KEYVAL_INVALID", "MPI_ERR_KEYVAL"
    if p.kind in LENGTHS:
        return "-1", "MPI_ERR_ARG"
    has_comm = any(q.kind == "COMMUNICATOR" for q in routine.parameters)
    if p.kind == "TAG" and has_comm:
        return "-77", "MPI_ERR_TAG"
    if p.kind == "RANK" and has_comm and p.name in ("dest", "source", "root", "rank"):
        return "99", "MPI_ERR_ROOT" if p.name == "root" else "MPI_ERR_RANK"
    return None


def calls(api):
    for routine in api.routines:
        if routine.is_inline or routine.returns != "int" or LEFT_OUT.search(routine.name):
            continue
        # Of windows and files there is none but the null one.
        only = next((k for k in ("WINDOW", "FILE") if any(p.kind == k and p.dir != "out" for p in routine.parameters)), None)
        for wide in routine.forms:
            name = routine.name + ("_c" if wide else "")
            arguments = routine.arguments(wide)
            for p in arguments:
                bad = wrong(routine, p)
                if bad is None or (only and p.kind != only) or ALLOWED.match(f"{routine.name}:{p.name}"):
                    continue
                given = ", ".join(bad[0] if q is p else right(q, wide) for q in arguments)
                yield f'    TRY({bad[1]}, "{name}: {p.name}", {name}({given}));'


def main():
    api = model.Api(os.path.join(TOP, "ompi/mpi/api/standard.json"), os.path.join(TOP, "ompi/mpi/api/constants.tab"))
    lines = list(calls(api))
    parts = [lines[i:i + 100] for i in range(0, len(lines), 100)]
    text = HEAD + "".join(f"static void part_{i}(void)\n{{\n" + "\n".join(p) + "\n}\n" for i, p in enumerate(parts))
    text += MAIN % "\n".join(f"    part_{i}();" for i in range(len(parts)))
    with tempfile.TemporaryDirectory(prefix="hawser-test.") as folder:
        source, program = os.path.join(folder, "classes.c"), os.path.join(folder, "classes")
        with open(source, "w", encoding="ascii") as f:
            f.write(text)
        done = subprocess.run([os.path.join(BUILD, "libtool"), "--silent", "--mode=link", "--tag=CC",
                               *os.environ.get("CC", "cc").split(), "-std=gnu11", "-O0", "-w", f"-I{BUILD}/ompi/include",
                               f"-I{TOP}/ompi/include", source, f"{BUILD}/ompi/libmpi_abi.la", "-o", program],
                              capture_output=True, text=True, check=False)
        if done.returncode:
            print("".join(f"# {line}\n" for line in done.stderr.splitlines()[:40]) + "Bail out! it does not compile")
            return 99
        done = subprocess.run([program], capture_output=True, text=True, timeout=200, check=False)
        print(done.stdout, end="")
        print("".join(f"# {line}\n" for line in done.stderr.splitlines()[:40]), end="")
        return done.returncode


if __name__ == "__main__":
    sys.exit(main())
