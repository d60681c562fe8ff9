# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause

# mpirun: shell tests around a small PMIx program.
mpirun_tests = system/mpirun_run.sh system/mpirun_io.sh system/mpirun_end.sh system/mpirun_absent.sh
check_SCRIPTS += $(mpirun_tests)
EXTRA_DIST += $(mpirun_tests) system/lib.sh
EXTRA_PROGRAMS += system/pmix_client
system_pmix_client_SOURCES = system/pmix_client.c
system_pmix_client_LDADD = $(PMIX_LIBS)
CLEANFILES += $(EXTRA_PROGRAMS)
system/mpirun_run.log system/mpirun_end.log: system/pmix_client$(EXEEXT)
system/mpirun_end.log: system/launch_probe$(EXEEXT)
EXTRA_PROGRAMS += system/absent
system_absent_SOURCES = system/absent.c
system_absent_LDADD = $(ompi_lib)
system/mpirun_absent.log system/hosts_mpi.log: system/absent$(EXEEXT)

# Jobs that jobs ask for, on one host and on several.
spawn_tests = system/mpirun_spawn.sh system/hosts_spawn.sh
check_SCRIPTS += $(spawn_tests)
EXTRA_DIST += $(spawn_tests)
system/mpirun_spawn.log system/hosts_spawn.log: mpi/spawn$(EXEEXT)
system/mpirun_spawn.log: system/pmix_client$(EXEEXT)

# Parameters of a job.
check_SCRIPTS += system/params.sh
EXTRA_DIST += system/params.sh
EXTRA_PROGRAMS += system/params_hello
system_params_hello_SOURCES = system/params_hello.c
system_params_hello_LDADD = $(ompi_lib)
system/params.log system/mpirun_run.log: system/params_hello$(EXEEXT)

# Manual pages.
check_SCRIPTS += system/man_pages.sh
EXTRA_DIST += system/man_pages.sh

# The lab of hosts, and its own test.
check_SCRIPTS += system/lab.sh
EXTRA_DIST += system/lab.sh lab/lab lab/traffic

# Two links between two hosts of the lab, slowed down, cut and mended.
check_SCRIPTS += system/links.sh system/links_away.sh system/links_unused.sh system/links_lists.sh system/links_dr.sh system/dr_lossy.sh
EXTRA_DIST += system/links_lib.sh system/links.sh system/links_away.sh system/links_away.c system/links_unused.sh system/links_lists.sh system/links_dr.sh system/links_mix.c system/links_pairs.c system/dr_lossy.sh
# In test/soak only.
EXTRA_DIST += system/mpi4py_lossy.sh system/mixed.sh system/mpi4py_verbs.sh system/verbs_kit.sh

# Placement on hosts of the lab.
check_SCRIPTS += system/place.sh
EXTRA_DIST += system/place.sh

# Launchers that are not ours, and none at all.
launcher_tests = system/slurm.sh system/prterun.sh system/singleton.sh system/containers.sh
check_SCRIPTS += $(launcher_tests)
EXTRA_DIST += $(launcher_tests) lab/slurm support/openmpi.sh
EXTRA_PROGRAMS += system/launch_probe system/links_mix
system_launch_probe_SOURCES = system/launch_probe.c
system_launch_probe_LDADD = $(ompi_lib)
system_links_mix_SOURCES = system/links_mix.c
system_links_mix_LDADD = $(ompi_lib)
system/slurm.log system/prterun.log system/singleton.log system/containers.log: system/launch_probe$(EXEEXT)
system/slurm.log: mpi/p2p$(EXEEXT)

# Jobs that hang, and much input.
check_SCRIPTS += system/mpirun_timeout.sh system/stdin_gigabyte.sh
EXTRA_DIST += system/mpirun_timeout.sh system/stdin_gigabyte.sh
EXTRA_PROGRAMS += system/stuck
system_stuck_SOURCES = system/stuck.c
system/mpirun_timeout.log: system/stuck$(EXEEXT)

# Jobs over several hosts.
hosts_tests = system/hosts_run.sh system/hosts_end.sh system/hosts_mpi.sh \
    system/hosts_slurm.sh
check_SCRIPTS += $(hosts_tests)
EXTRA_DIST += $(hosts_tests) system/hosts_lib.sh
system/hosts_run.log system/hosts_slurm.log: system/pmix_client$(EXEEXT)
system/hosts_mpi.log system/hosts_end.log: system/launch_probe$(EXEEXT)

# Devices for RDMA, in a lab of their own. What the first needs is built before all tests: make begins one whose programs are being built when
# it has begun all others.
long_tests += system/verbs.sh
check_DATA += system/launch_probe$(EXEEXT) system/links_mix$(EXEEXT)
EXTRA_DIST += system/verbs.sh system/verbs_inside.sh lab/verbs lab/verbs-guest
system/verbs.log: system/launch_probe$(EXEEXT) system/links_mix$(EXEEXT)
check_SCRIPTS += system/verbs_suite.sh
EXTRA_DIST += system/verbs_suite.sh system/verbs_suite_inside.sh
