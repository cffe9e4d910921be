// Package events follows the journals of tasks for any number of subscribers.
//
// A Pipe has one topic for each task that has a subscriber or a run of this process, and one for all tasks. The topic
// reads the journal once, folds it once, renders each event once, and keeps the newest events in a ring, up to
// ringBytes. Subscribers copy bytes from the ring at their own pace. A subscriber whose cursor is older than the ring,
// because it asked for the past or reads slowly, reads the journal itself until the ring covers its cursor. So no
// subscriber delays another one, and the topic stores nothing for a subscriber.
//
// Rejected: a queue for each subscriber, which drops the newest events or disconnects the subscriber when it is full. Queues
// cost memory for each subscriber, and make slow subscribers reconnect forever.
//
// The cursor of a task is <epoch>.<seq>-<index>. A subscriber whose cursor is not in the journal, because another copy was
// restored, gets a snapshot and the events after it. The topic of all tasks also has the changes of the overlay (labels of
// other tools' tasks, deletions, restores): the feed names the overlay like a task. A task's own topic has only events of
// its own journal.
//
// Durable events have an id, come once and in order, and depend on the journals alone: each process that reads them
// gets the same bytes. Live events (deltas, notices) are not in any journal. They have no id, come after the commit
// that they followed, and are the first events that a slow subscriber misses: their text comes again as a whole message.
//
// The order of all tasks' events is that of the activity log of the root (package store/feed).
package events
