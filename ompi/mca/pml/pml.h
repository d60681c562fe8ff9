/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The PML contract: MPI point-to-point messages. One PML per process is selected, the same in all processes of a
 * job (checked at start). `count` is in units of the datatype; `rank`s are those of the communicator's remote
 * group, valid or MPI_PROC_NULL / MPI_ANY_SOURCE, arguments are checked by the caller. All functions are thread-safe
 * under MPI_THREAD_MULTIPLE, return MPI error classes, and may drive progress only where they must wait.
 */
#ifndef OMPI_MCA_PML_PML_H
#define OMPI_MCA_PML_PML_H

#include "ompi/communicator/communicator.h"
#include "ompi/datatype/datatype.h"
#include "ompi/request/request.h"
#include "opal/mca/base/framework.h"

#pragma GCC visibility push(default) /* components use these */

#define MCA_PML_CONTRACT_MAJOR 3
#define MCA_PML_CONTRACT_MINOR 0

typedef enum {
    MCA_PML_STANDARD,
    MCA_PML_READY,
    MCA_PML_BUFFERED, /* from the attached buffers (or automatic buffering); completes locally */
    MCA_PML_SYNCHRONOUS,
    /* Of collectives: instead of the message that the receiver waits for, as we have not got what it was to be made
     * of. There is no data; its receive ends with MPI_ERR_OTHER. */
    MCA_PML_FAILED,
} mca_pml_mode_t;

/* A message taken out of matching by mprobe. */
struct ompi_message_t {
    ompi_handle_base_t base;
    ompi_communicator_t *comm;
    MPI_Status status;
    void *arrival;             /* the PML's */
};

extern ompi_message_t ompi_message_no_proc; /* MPI_MESSAGE_NO_PROC */

typedef struct mca_pml {
    const char *name;
    int (*add_comm)(ompi_communicator_t *comm);
    /* ompi_comm_of_context() finds the communicator from now on: to be called after add_comm(). Messages that came
     * before are matched now. */
    void (*comm_visible)(ompi_communicator_t *comm);
    /* Which links messages that this process sends on the communicator may use (pml_base_bind.h); NULL: any. */
    void (*bind_comm)(ompi_communicator_t *comm, struct mca_pml_bind *bind);
    void (*del_comm)(ompi_communicator_t *comm);

    int (*send)(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag, ompi_communicator_t *comm);
    /* MPI_Send: calls the communicator's error handler itself. */
    int (*send_user)(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag, ompi_communicator_t *comm);
    int (*send_mode)(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag, mca_pml_mode_t mode,
                     ompi_communicator_t *comm);
    int (*isend)(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag, mca_pml_mode_t mode,
                 ompi_communicator_t *comm, ompi_request_t **request);
    /* MPI_Isend in standard mode: while nobody waits for the request, it may end when the peer has acknowledged the message. */
    int (*isend_user)(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag, mca_pml_mode_t mode,
                      ompi_communicator_t *comm, ompi_request_t **request);
    int (*send_init)(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag, mca_pml_mode_t mode,
                     ompi_communicator_t *comm, ompi_request_t **request);
    int (*recv)(void *buf, size_t count, ompi_datatype_t *type, int src, int tag, ompi_communicator_t *comm,
                MPI_Status *status);
    int (*irecv)(void *buf, size_t count, ompi_datatype_t *type, int src, int tag, ompi_communicator_t *comm,
                 ompi_request_t **request);
    int (*recv_init)(void *buf, size_t count, ompi_datatype_t *type, int src, int tag,
                     ompi_communicator_t *comm, ompi_request_t **request);

    int (*iprobe)(int src, int tag, ompi_communicator_t *comm, bool *found, MPI_Status *status);
    int (*probe)(int src, int tag, ompi_communicator_t *comm, MPI_Status *status);
    int (*improbe)(int src, int tag, ompi_communicator_t *comm, bool *found, ompi_message_t **message,
                   MPI_Status *status);
    int (*mprobe)(int src, int tag, ompi_communicator_t *comm, ompi_message_t **message, MPI_Status *status);
    /* Consumes the message. */
    int (*imrecv)(void *buf, size_t count, ompi_datatype_t *type, ompi_message_t *message,
                  ompi_request_t **request);
    int (*mrecv)(void *buf, size_t count, ompi_datatype_t *type, ompi_message_t *message, MPI_Status *status);

    /* The process has ended without a farewell: after what it sent has been taken, requests that need it fail. From
     * progress. */
    void (*lost)(ompi_proc_t *proc);

    /* All that was sent, to members of `comm` or (NULL) to anybody, has left us and been confirmed; part of
     * MPI_Finalize and MPI_Comm_disconnect, before the processes wait for each other. */
    int (*drain)(ompi_communicator_t *comm);
    bool confirms; /* others wait in drain() for what this process answers, by itself or not */
} mca_pml_t;

/* mca_base_component_t.ops of framework "pml". */
typedef struct mca_pml_component_ops {
    size_t struct_size;
    int (*query)(int *priority);          /* can it run, and how gladly */
    int (*init)(mca_pml_t *pml);          /* selected: start, with all BTLs, and fill the table */
    void (*finalize)(void);
} mca_pml_component_ops_t;

/* The selected one; valid between mca_pml_base_select() and mca_pml_base_close(). */
extern mca_pml_t mca_pml;

extern mca_base_framework_t mca_pml_base_framework;

int mca_pml_base_open(void);
int mca_pml_base_select(void);
/* Hand this process's addresses to the runtime, and with them what others compare with their own: once coll is open. */
int mca_pml_base_publish(void);
void mca_pml_base_close(void);

#pragma GCC visibility pop

#endif
