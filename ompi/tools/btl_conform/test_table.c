/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The table of tests, and what most of them start and end with. */
#include "ompi/tools/btl_conform/conform.h"
#include "ompi/tools/btl_conform/tests.h"

int test_other(void)
{
    return self.size == 1 ? 0 : 1 - self.rank;
}

conform_peer_t *test_start(void)
{
    conform_link_start();
    return conform_add(test_other());
}

void test_finish(conform_peer_t *peer, uint64_t sent)
{
    self.shared->words[self.rank] = sent;
    conform_progress_barrier();
    conform_wait_arrived(peer, self.shared->words[test_other()]);
    conform_wait_idle(peer);
    uint64_t due = self.shared->words[test_other()];
    REQUIRE(peer->arrived <= due && peer->arrived + conform_loss_max(due) >= due,
            "%llu fragments arrived, %llu were sent", (unsigned long long)peer->arrived, (unsigned long long)due);
    conform_progress_barrier();
    conform_link_end();
}

const conform_test_t conform_tests[] = {
    {"contract", "limits, capabilities and operations make sense; strangers are refused", 2, test_contract},
    {"sizes", "every way of sending, every size up to the largest fragment", 2, test_sizes},
    {"mixed", "random sizes by random ways, both directions at once: order, bytes, exactly once", 2,
     test_mixed},
    {"messages", "messages of 0 bytes to 64 MiB as fragments", 2, test_messages},
    {"room", "reserve: lent room is as large as asked for, may be abandoned, or used in part", 2, test_room},
    {"descriptors", "each queued descriptor has its events, once and in order", 2, test_descriptors},
    {"upcalls", "sending from inside the arrive upcall", 2, test_upcalls},
    {"keep", "kept arrivals stay intact until released, in any order", 2, test_keep},
    {"place", "payload put where place() says", 2, test_place},
    {"brief", "fragments by arrive_brief(), or, where that says no, by arrive()", 2, test_brief},
    {"parts", "fragments that are read while they are written: to places, and without", 2, test_parts},
    {"ahead", "what was sent while more was ahead is shown when that is over, whatever its sender does then", 3, test_ahead},
    {"parts_death", "the peer is killed while it sends in parts: places are given back", 2, test_parts_death},
    {"putget", "put and get", 2, test_putget},
    {"remap", "get of and into memory that was given back and mapped anew at the same address", 2, test_remap},
    {"group", "one datagram to a group: to its members, once, to nobody else", 3, test_group},
    {"pressure", "a receiver that does not look: refusal, bounded memory, writable", 2, test_pressure},
    {"sleep", "a sleeping receiver wakes for each arrival", 2, test_sleep},
    {"sleep_sender", "a sender asleep for want of room wakes when there is some", 2, test_sleep_sender},
    {"threads", "several threads send on one endpoint while another makes progress", 2, test_threads},
    {"many", "all to all among many processes", 0, test_many},
    {"again", "del_peer and add_peer once more", 2, test_again},
    {"leak", "init and finalize leave nothing open, mapped or on disk", 1, test_leak},
    {"recall", "descriptors taken back: their memory is read no more, the stream stays whole", 2, test_recall},
    {"displace", "payload on its way to a place is kept from it", 2, test_displace},
    {"fail", "a link that is given up goes down, hands all back, and comes up again", 2, test_fail},
    {"get_fail", "a link fails while it gets: each get ends, and nothing is written after that", 2, test_get_fail},
    {"death", "the peer is killed: the endpoint goes down, and all that was queued comes back", 2, test_death},
    {0},
};
