# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
"""Emits the shells: the MPI routines as the program calls them, checks and conversions around the
call of a body. One file per group of routines."""

import re

import bodies
import checks
import groups

FILE_TOP = """\
/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* MPI routines: checks, conversion of handles, call of the body, error handler. Generated. */
#include "ompi/mpi/c/shell.h"
"""

# Output counts that are MPI_UNDEFINED where an int cannot hold them; elsewhere that is the error
# MPI_ERR_VALUE_TOO_LARGE.
UNDEFINED_IF_LARGE = re.compile(r"MPI_(Get_count|Get_elements|Pack_size|Type_size|Type_get_extent|"
                                r"Type_get_true_extent|Buffer_detach|(Comm|Session)_detach_buffer)$")

# The object whose error handler is called, in order of preference.
ERROR_OBJECTS = ("WINDOW", "FILE", "SESSION", "COMMUNICATOR")

# Bodies that call the error handler themselves, so that nothing is kept for after their call, or as it is gone then.
RAISING = re.compile(r"MPI_(Send|Finalize)$")

# A count for each partition: not looked at by the shell.
PARTITIONED = re.compile(r"MPI_P(send|recv)_init")

COLLECTIVE = re.compile(r"MPI_I?(gatherv?|scatterv?|allgatherv?|alltoallv?|bcast|reduce)(_init)?$",
                        re.IGNORECASE)


# The form: one count for all, one for each process (v), one type for each as well (w).
EXCHANGE = re.compile(r"MPI_(?:A|Ia)lltoall([vw]?)(?:_init)?$")
# What rank 0 receives is not significant (MPI-5.0, section 6.11.2).
EXSCAN = re.compile(r"MPI_(?:E|Ie)xscan(?:_init)?$")


class Shell:
    """One form of one routine."""

    def __init__(self, routine, wide):
        self.routine = routine
        self.wide = wide
        self.name = routine.name + ("_c" if wide else "")
        self.parameters = routine.arguments(wide)
        self.comm = self.first("COMMUNICATOR")
        self.collective = COLLECTIVE.match(routine.name)
        self.lines = []
        self.checked = set()
        self.checking = "ompi_mpi_param_check"
        self.entering = []

    # -- what the parameters are to the shell --

    def first(self, kind):
        """The local that holds the first IN or INOUT handle of a kind, or None."""
        for p in self.parameters:
            if p.kind == kind and p.dir != "out" and not p.array:
                return p.name + "_"
        return None

    def handles(self, *directions):
        return [p for p in self.parameters
                if bodies.is_handle(self.routine, p) and p.dir in directions]

    def error_object(self):
        """The object for the error handler and its class, as C expressions."""
        if re.match(r"MPI_File_(open|delete)$", self.routine.name):
            return "NULL", "FILE"
        for kind in ERROR_OBJECTS:
            if self.first(kind):
                return self.first(kind), bodies.HANDLES[kind][2]
        made = checks.made_with_handler(self.routine)
        if made:
            return "errhandler_", bodies.HANDLES[made][2]
        if any(p.kind in ("REQUEST", "MESSAGE") and p.dir != "out" for p in self.parameters):
            return "NULL", "REQUEST"  # the request may be gone by then: its body notes the object
        return "NULL", "NONE"

    def significance(self):
        """Where some arguments count in some processes only: which ones, and the condition."""
        if self.routine.name == "MPI_Intercomm_create":
            return {"leader": "local_comm_->my_rank == local_leader"}
        if not self.collective:
            root_only = any(p.root_only for p in self.parameters)
            return {"root": f"ompi_shell_at_root({self.comm}, root)"} if root_only else {}
        operation = self.collective.group(1).lower()
        if operation.startswith("gather"):
            return {"send": "sendbuf != MPI_IN_PLACE && root >= 0",
                    "recv": f"ompi_shell_at_root({self.comm}, root)"}
        if operation.startswith("scatter"):
            return {"send": f"ompi_shell_at_root({self.comm}, root)",
                    "recv": "recvbuf != MPI_IN_PLACE && root >= 0"}
        if operation in ("bcast", "reduce"):
            return {"data": "root != MPI_PROC_NULL"}
        return {"send": "sendbuf != MPI_IN_PLACE"}

    def condition(self, p):
        """The local that says whether p is significant; None: it always is."""
        known = self.significance()
        if "leader" in known:
            return "at_leader" if p.name == "peer_comm" else None
        if "root" in known:
            return "at_root" if p.root_only else None
        for side in ("send", "recv"):
            if side in known and p.name in (side + "count", side + "type"):
                return side + "_used"
        if "data" in known and p.name in ("count", "datatype"):
            return "data_used"
        return None

    # -- the parts of the shell --

    def emit(self):
        prototype = "OMPI_DECLSPEC " + self.routine.prototype(self.wide, "P")
        self.lines = bodies.wrap(prototype).split("\n") + ["{"]
        if bodies.is_conversion(self.routine):
            self.conversion_of_handle()
        elif bodies.is_raw(self.routine):
            if self.name.startswith("MPI_T_"):  # at any time; what tools look at is the library's all the same
                self.add("(void) ompi_enter();")
            self.add(f"return {self.call([p.name for p in self.parameters])};")
        else:
            self.checked_call()
        self.lines = self.entering + self.lines + ["}", f"OMPI_SHELL_ALIAS({self.name})"]
        return "\n".join(self.lines) + "\n"

    def add(self, text, depth=1):
        self.lines.append(bodies.wrap("    " * depth + text))

    def call(self, arguments):
        return f"{bodies.body_name(self.routine)}({', '.join(arguments)})"

    def conversion_of_handle(self):
        p = self.parameters[0]
        stem = self.routine.name.split("_")[1]
        kind = "DATATYPE" if stem == "Type" else stem.upper()
        if self.routine.returns == "int":
            self.add(f"return ompi_shell_toint({p.name}, OMPI_HANDLE_{kind}, MPI_{kind}_NULL);")
        else:
            self.add(f"return ompi_shell_fromint({p.name}, OMPI_HANDLE_{kind}, MPI_{kind}_NULL);")

    def checked_call(self):
        self.early_checks()
        self.conversions()
        self.late_checks()
        self.name_of_null_handle()
        self.finish(self.outputs())

    def guard(self, conditions, target):
        """Checks (condition, error class, parameter). Each returns by itself, so that nothing but the
        error handler's object is kept for afterwards."""
        if not conditions:
            return
        self.add(f"if (OPAL_LIKELY({self.checking})) {{")
        for condition, error, p in conditions:
            self.add(f"if (OPAL_UNLIKELY({condition})) {{", 2)
            self.add(self.failure(target, self.complaint(error, p)), 3)
            self.add("}", 2)
        self.add("}")

    def failure(self, target, error):
        """The statement that calls the error handler and returns."""
        obj, kind = target
        function = "ompi_shell_error_given" if obj == "errhandler_" else "ompi_shell_error"
        return f"return {function}({obj}, OMPI_HANDLE_{kind}, {error}, \"{self.name}\");"

    def complaint(self, error, p):
        """The error class, with the argument noted for the error handler's message."""
        if p.kind == "POLYFUNCTION":  # functions have no address of data
            return f"ompi_shell_bad_pointer({error}, \"{p.name}\", NULL)"
        if p.kind == "BUFFER":
            return f"ompi_shell_bad_address({error}, \"{p.name}\", {p.name})"
        if bodies.is_handle(self.routine, p) and not p.type.endswith("*"):
            return f"ompi_shell_bad_handle({error}, \"{p.name}\", {p.name})"
        if p.type.endswith("*") or p.array:
            return f"ompi_shell_bad_pointer({error}, \"{p.name}\", {p.name})"
        return f"ompi_shell_bad_value({error}, \"{p.name}\", {p.name})"

    def enter(self, target):
        """Once, where the routine needs that the library is initialised."""
        if checks.ANY_TIME.match(self.routine.name) or "entry" in self.checked:
            return
        self.checked.add("entry")
        self.checking = "enter == OMPI_ENTER_CHECK"
        if RAISING.match(self.routine.name):
            self.enter_by_jump()
            return
        self.add("const ompi_enter_t enter = ompi_enter();")
        self.add("if (OPAL_UNLIKELY(enter == OMPI_ENTER_NOT)) {")
        self.add(self.failure(target, "OMPI_SHELL_INACTIVE"), 2)
        self.add("}")

    def enter_by_jump(self):
        """What is out of the ordinary at entry goes to a function with the same arguments: no register is saved for it."""
        name = self.name.replace("MPI_", "enter_")
        arguments = ", ".join(p.name for p in self.parameters)
        prototype = self.routine.prototype(self.wide, "P").replace("P" + self.name, name, 1)
        self.entering = bodies.wrap("static OPAL_COLD " + prototype).split("\n") + [
            "{", "    if (ompi_enter_other() == OMPI_ENTER_NOT) {",
            f"        return ompi_shell_error(NULL, OMPI_HANDLE_COMM, OMPI_SHELL_INACTIVE, \"{self.name}\");",
            "    }", bodies.wrap(f"    return P{self.name}({arguments});"), "}"]
        self.add("const ompi_enter_t enter = ompi_enter_usual();")
        self.add("if (OPAL_UNLIKELY(enter == OMPI_ENTER_OTHER)) {")
        self.add(f"return {name}({arguments});", 2)
        self.add("}")

    def early_checks(self):
        """What must hold before handles can be read: INOUT pointers are there."""
        found = [(f"{p.name} == NULL", checks.ERROR_OF[p.kind], p)
                 for p in self.handles("in", "inout") if p.type.endswith("*")]
        if found:
            self.enter(("NULL", "NONE"))
            self.guard(found, ("NULL", "NONE"))

    def conversions(self):
        """Handles to objects; those that are read only where they are significant come last."""
        late = []
        for p in self.handles("in", "inout"):
            internal, prefix, _ = bodies.HANDLES[p.kind]
            value = f"*{p.name}" if p.type.endswith("*") else p.name
            convert = f"ompi_{prefix}_from_handle({value})"
            if not checks.null_allowed(self.routine, p):
                convert = f"ompi_handle_object_unchecked({value})"
            condition = self.condition(p)
            if condition:
                late.append(f"{internal} *{p.name}_ = {condition} ? {convert} : NULL;")
            else:
                self.add(f"{internal} *{p.name}_ = {convert};")
        self.significant_arguments()
        for text in late:
            self.add(text)

    def significant_arguments(self):
        """Locals for the conditions that some conversion or check depends on."""
        needed = {self.condition(p) for p in self.parameters if self.check(p)}
        conditions = {"at_" + side if side in ("root", "leader") else side + "_used": text
                      for side, text in self.significance().items()}
        conditions = {local: text for local, text in conditions.items() if local in needed}
        if any(self.comm in text for text in conditions.values() if self.comm):
            comm = next(p for p in self.parameters if p.name + "_" == self.comm)
            self.enter(("NULL", "COMM"))
            self.guard([(*checks.not_a("COMMUNICATOR", self.comm), comm)], ("NULL", "COMM"))
            self.checked.add(self.comm)
        for local, text in conditions.items():
            self.add(f"const bool {local} = {text};")

    def late_checks(self):
        """Checks of arguments, those of the object that the error handler hangs on first."""
        target = self.error_object()
        self.enter(target)
        found = []
        for p in sorted(self.parameters, key=lambda p: p.name + "_" != target[0]):
            check = None if p.name + "_" in self.checked else self.check(p)
            if check:
                condition = self.condition(p)
                text = check[0]
                if condition:
                    text = f"{condition} && " + (f"({text})" if " && " in text else text)
                found.append((text, check[1], p))
        found += [(text, "MPI_ERR_BUFFER", p) for text, p in self.buffer_checks()]
        self.guard(found, target)

    # -- buffers: after their counts and datatypes --

    def buffer_checks(self):
        """(condition, parameter) of buffers that can't be. Not for windows and files, nor for
        messages, which may be MPI_MESSAGE_NO_PROC."""
        if {"WINDOW", "FILE", "MESSAGE"} & {p.kind for p in self.parameters} or \
                PARTITIONED.match(self.name) or not self.moves_data():
            return []
        found = []
        for p in self.parameters:
            text = self.bad_buffer(p) if p.kind == "BUFFER" else None
            if text:
                when = self.buffer_matters(p)
                text = f"({text})" if " || " in text and when else text
                parts = [when, text] if when else [text]
                if "MPI_PROC_NULL" in parts[0] and "root" not in parts[0]:
                    parts.reverse()  # one branch on the way of each message
                found.append((" && ".join(parts), p))
        return found + self.aliased_buffers()

    def count_and_type(self, p):
        """The arguments that go with a buffer; None where there is one count for each process."""
        side = p.name[:-3]
        by_name = {q.name: q for q in self.parameters}
        for count, kind in ((side + "count", side + "type"), (side + "count", "datatype"),
                            ("count", "datatype"), ("recvcount", "datatype")):
            if {count, kind} <= set(by_name) and not by_name[count].array:
                return count, kind + "_"
        return None

    def bad_buffer(self, p):
        extent = self.count_and_type(p)
        if self.in_place_allowed(p):
            checks_of = [f"ompi_shell_no_buffer({p.name}, {extent[0]}, {extent[1]})"] if extent \
                else []
            if "root" in {q.name for q in self.parameters}:
                checks_of.append(f"({p.name} == MPI_IN_PLACE && "
                                 f"!ompi_shell_at_root({self.comm}, root))")
            return " || ".join(checks_of)
        if extent:
            return f"ompi_shell_bad_buffer({p.name}, {extent[0]}, {extent[1]})"
        return f"{p.name} == MPI_IN_PLACE" if self.comm and p.name == "recvbuf" else None

    def in_place_allowed(self, p):
        """MPI-5.0, chapter 6: in place of what a process would send to itself."""
        if not self.comm or "neighbor" in self.name.lower() or \
                {"dest", "source"} & {q.name for q in self.parameters}:
            return False
        return p.name == ("recvbuf" if "scatter" in self.name.lower() and "root" in
                          {q.name for q in self.parameters} else "sendbuf")

    def buffer_matters(self, p):
        """Where a buffer is not significant everywhere: when it is."""
        names = {q.name for q in self.parameters}
        partner = {"sendbuf": "dest", "recvbuf": "source"}.get(
            p.name, "dest" if "dest" in names else "source")
        if partner in names:
            return f"{partner} != MPI_PROC_NULL"
        if EXSCAN.match(self.routine.name) and p.name == "recvbuf":
            return f"({self.comm}->my_rank > 0 || sendbuf == MPI_IN_PLACE)"
        if "neighbor" in self.name.lower():
            return f"ompi_shell_has_neighbors({self.comm}, {str(p.name == 'recvbuf').lower()})"
        if "root" not in names:
            return None
        at_root = f"ompi_shell_at_root({self.comm}, root)"
        if p.name == "recvbuf" and "scatter" not in self.name.lower():
            return at_root
        if p.name == "sendbuf" and "scatter" in self.name.lower():
            return at_root
        return "root >= 0" if p.name in ("sendbuf", "recvbuf") else "root != MPI_PROC_NULL"

    def aliased_buffers(self):
        """A reduction's result must not overwrite what goes into it, nor what an alltoall receives what it sends."""
        by_name = {q.name: q for q in self.parameters}
        exchange = EXCHANGE.match(self.routine.name)
        if exchange:
            return [(self.aliased_blocks(exchange.group(1)), by_name["recvbuf"])]
        if not {"sendbuf", "recvbuf", "op"} <= set(by_name):
            return []
        text = "recvbuf != NULL && sendbuf == recvbuf"
        for count in ("count", "recvcount", "recvcounts"):
            if count in by_name:
                text += f" && {count}{f'[{self.comm}->my_rank]' if by_name[count].array else ''} > 0"
        if EXSCAN.match(self.routine.name):
            text += f" && {self.comm}->my_rank > 0"
        if "root" in by_name:
            text += f" && ompi_shell_at_root({self.comm}, root)"
        return [(text, by_name["recvbuf"])]

    def aliased_blocks(self, form):
        """What a process sends to itself lies where it receives it."""
        def aliased(*details):
            send, receive = (", ".join((side + "buf",) + tuple(d.format(side, side[0]) for d in details))
                             for side in ("send", "recv"))
            return f"ompi_shell_aliased({send}, {receive})"
        inside = f"!ompi_comm_is_inter({self.comm})"
        if not form:
            return f"{aliased('0', '{0}type_')} && sendcount > 0 && {inside}"
        mine = f"[{self.comm}->my_rank]"
        blocks = aliased("{1}displs" + mine + " * ompi_datatype_extent({0}type_)", "{0}type_") if form == "v" else \
            aliased("{1}displs" + mine, "ompi_datatype_from_handle({0}types" + mine + ")")
        return f"sendbuf != MPI_IN_PLACE && {inside} && sendcounts{mine} > 0 && {blocks}"

    def check(self, p):
        if bodies.is_handle(self.routine, p):
            if p.dir == "out":
                return checks.pointer_check(self.routine, p)
            if p.kind == "DATATYPE" and self.moves_data():
                return f"!ompi_shell_type_ok({p.name}_)", "MPI_ERR_TYPE"
            if p.kind == "OPERATION" and self.reduces():
                return "!ompi_shell_op_ok(op_, datatype_)", "MPI_ERR_OP"
            return checks.handle_check(self.routine, p, p.name + "_")
        return checks.pointer_check(self.routine, p) or self.request_array_check(p) or \
            checks.value_check(self.routine, p, self.comm)

    def reduces(self):
        """Whether an operator is applied to a datatype, both of which must go together."""
        return any(p.name == "datatype" for p in self.parameters) and \
            "WINDOW" not in {p.kind for p in self.parameters}

    def moves_data(self):
        return any(p.kind == "BUFFER" for p in self.parameters) and self.handles("in")

    def request_array_check(self, p):
        if p.kind != "REQUEST" or not p.array:
            return None
        count = "incount" if any(q.name == "incount" for q in self.parameters) else "count"
        return f"{p.name} == NULL && {count} > 0", "MPI_ERR_REQUEST"

    def name_of_null_handle(self):
        """MPI_*_get_name takes the null handle, too, whose name is that of the constant."""
        if re.match(r"MPI_(Comm|Type|Win)_get_name$", self.routine.name):
            handle, name, length = self.parameters
            constant = f"MPI_{bodies.HANDLES[handle.kind][2]}_NULL"
            self.add(f"if (OPAL_UNLIKELY({handle.name}_ == NULL)) {{")
            self.add(f"return ompi_shell_null_name(\"{constant}\", {name.name}, {length.name});", 2)
            self.add("}")

    # -- the call and its results --

    def outputs(self):
        """Declares what the body writes into; returns the arguments of the call."""
        arguments = []
        for p in self.routine.parameters:
            if p.kind == "VARARGS":
                continue
            arguments += self.argument(p)
        if bodies.CONSTRUCTORS.match(self.routine.name):
            arguments.append("true" if self.wide else "false")
        return arguments

    def argument(self, p):
        if bodies.is_handle(self.routine, p):
            if p.dir == "out":
                self.add(f"{bodies.HANDLES[p.kind][0]} *{p.name}_ = NULL;")
            return [p.name + "_" if p.dir == "in" else f"&{p.name}_"]
        if p.large_only and not self.wide:
            return [self.large_only_argument(p)]
        if p.kind == "POLYFUNCTION":
            return ["NULL", p.name] if self.wide else [p.name, "NULL"]
        if p.varies and p.array:
            return [f"OMPI_SHELL_COUNTS({p.name})"]
        if self.through_temporary(p):
            start = f"*{p.name}" if p.dir == "inout" else "0"
            self.add(f"MPI_Count {p.name}_ = {start};")
            return [f"&{p.name}_"]
        return [p.name]

    def large_only_argument(self, p):
        """What the plain form hands over for a parameter that only the _c form has."""
        if p.dir == "in":
            return "0"
        if p.array:
            return "NULL"
        self.add(f"MPI_Count {p.name}_ = 0;")
        return f"&{p.name}_"

    def through_temporary(self, p):
        return (p.varies and p.dir != "in" and not p.array and
                p.ctype(self.wide) != "MPI_Count *")

    def finish(self, arguments):
        self.lines.append("")
        if RAISING.match(self.routine.name):
            self.add(f"return {self.call(arguments)};")
            return
        self.add(f"int rc = {self.call(arguments)};")
        for p in self.handles("inout"):
            self.add(f"*{p.name} = ompi_{bodies.HANDLES[p.kind][1]}_handle({p.name}_);")
        stores = self.stores()
        self.too_large()
        self.add("if (OPAL_UNLIKELY(rc != MPI_SUCCESS)) {")
        self.add(self.failure(self.error_object(), "rc"), 2)
        self.add("}")
        self.lines += stores
        self.add("return MPI_SUCCESS;")

    def too_large(self):
        """The plain form cannot hand out what does not fit an int."""
        conditions = []
        for p in self.routine.parameters:
            if p.large_only and not self.wide and p.dir == "out" and not p.array:
                self.add(f"if (rc == MPI_SUCCESS && {p.name}_ > 0) {{")
                self.add("rc = MPI_ERR_TYPE;", 2)
                self.add("}")
            elif self.through_temporary(p) and not self.undefined_if_large():
                conditions.append(p)
        for p in conditions:
            if p.ctype(self.wide) == "int *":
                self.add(f"if (rc == MPI_SUCCESS && {p.name}_ > INT_MAX) {{")
                self.add("rc = MPI_ERR_VALUE_TOO_LARGE;", 2)
                self.add("}")

    def undefined_if_large(self):
        return UNDEFINED_IF_LARGE.match(self.routine.name) is not None

    def stores(self):
        """Hands the results out; only reached when all went well."""
        kept, self.lines = self.lines, []
        for p in self.handles("out"):
            self.add(f"*{p.name} = ompi_{bodies.HANDLES[p.kind][1]}_handle({p.name}_);")
        for p in self.parameters:
            if not self.through_temporary(p):
                continue
            ctype = p.ctype(self.wide).rstrip(" *")
            if self.undefined_if_large() and ctype == "int":
                self.add(f"*{p.name} = {p.name}_ > INT_MAX ? MPI_UNDEFINED : (int) {p.name}_;")
            else:
                self.add(f"*{p.name} = ({ctype}) {p.name}_;")
        stores, self.lines = self.lines, kept
        return stores


def emit(api):
    """All files: (name, text)."""
    texts = {}
    for routine in api.routines:
        if routine.is_inline:
            continue
        group = groups.group_of(routine.name)
        for wide in routine.forms:
            texts.setdefault(group, [FILE_TOP]).append(Shell(routine, wide).emit())
    missing = [g for g, _ in groups.GROUPS if g not in texts]
    if missing:
        raise ValueError(f"groups.py: nothing falls into {', '.join(missing)}")
    return [(f"shell_{group}.c", "\n".join(parts)) for group, parts in texts.items()]
