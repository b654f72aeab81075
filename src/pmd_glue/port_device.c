/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Stopping and removing a device. Some drivers do things to the same device on EAL's interrupt
 * thread, without a lock, when the peer leaves at that moment; theirs is done on that thread, too.
 */
#include <semaphore.h>

#include <rte_alarm.h>
#include <rte_dev.h>

#include "pmd_glue/internal.h"
#include "pmd_glue/port_setup.h"

struct call {
	void (*fn)(struct pmf_port *port);
	struct pmf_port *port;
	sem_t done;
};

static void call_run(void *arg)
{
	struct call *c = arg;

	c->fn(c->port);
	sem_post(&c->done);
}

/* Alarms run on the interrupt thread, in the order of their times: after what drivers deferred. */
static void device_call(struct pmf_port *port, void (*fn)(struct pmf_port *port))
{
	struct call c = {.fn = fn, .port = port};

	sem_init(&c.done, 0, 0);
	if (port->quirks && port->quirks->on_intr_thread &&
	    rte_eal_alarm_set(1, call_run, &c) == 0) {
		while (sem_wait(&c.done) != 0)
			continue;
	} else {
		fn(port);
	}
	sem_destroy(&c.done);
}

static void stop(struct pmf_port *port)
{
	rte_eth_dev_stop(port->port_id);
}

static void remove_device(struct pmf_port *port)
{
	if (rte_eal_hotplug_remove(port->conf.is_pci ? "pci" : "vdev", port->conf.name) != 0)
		rte_eth_dev_close(port->port_id);
}

void pmf_port_stop(struct pmf_port *port)
{
	if (port->started)
		device_call(port, stop);
	port->started = false;
}

void pmf_port_remove(struct pmf_port *port)
{
	/* Found by its name when it is opened again. */
	if (port->quirks && port->quirks->stays && port->quirks->stays(&port->conf))
		return;
	device_call(port, remove_device);
}
