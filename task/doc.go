// Package task is the meaning of a task's log: it folds events into the two
// histories, the tool outcomes, the questions, the queue, the file records and
// the usage totals.
//
// Everything here is a pure function of the events and of the blobs they name
// (blobs are named by their content, so loading one is pure too). There is no
// clock, no disk and no network. Folding a prefix and then the rest equals
// folding all, and every prefix is a valid state.
//
// # Events
//
// The names are those of the event stream. An event of an unknown type is kept. A new type needs a struct, a line in
// the table of the decoder, a case in the fold, and a line here:
//
//	task.created          a task begins here, with its settings
//	task.adopted          a task of another tool begins here: its files are blobs, their elements the first messages
//	task.changed          title, tags, pin, settings or who may reach the task changed, or an undo or redo of such a change, which it names
//	task.forked           a task begins here with the history of another one, whose log its own log begins with
//	task.received         what precedes it came from elsewhere: it ends all that was open
//	epoch.opened          a new owner; the journal's own event
//	run.queued            a run will begin when a slot is free; again for a run that waits: its new settings
//	run.started           a run begins, with its settings and the HEAD of the workspace's repository
//	run.waiting           a run needs an answer to a question of its own or of a subtask
//	run.ended             completed, failed, cancelled, interrupted, limit or denied, and the reason
//	turn.started          a request is about to go out: provider, model, size
//	turn.failed           an attempt brought no reply; when the next one follows, or when a quota is free again
//	turn.ended            the reply is stored
//	history.rewound       the head of both histories moved: what is hidden, which tags, outcomes, questions and inputs no
//	                      longer count; or which branch is the head now
//	history.undone        an undo or redo of such a move, which it names
//	history.condensed     a summary stands for older messages; the summary and its row are in the same commit
//	history.truncated     older messages got a tag and a marker because the request was too long
//	message.added         a message at the end of one history (ui or api), or before another message
//	message.changed       new content of a message, in its place
//	message.text_saved    a piece of streamed text, appended to its message
//	message.hidden        messages leave their history; their bytes stay
//	message.withheld      a part of a message that is not sent any more, because a provider refused it
//	tool.started          a tool's body is about to run; whether it may be repeated; who allowed it
//	tool.process          the process group of a command
//	tool.finished         the outcome, with the result block for the model
//	question.opened       a question that only the user can decide
//	question.closed       the answer, or why there is none
//	input.queued          input that was acknowledged and not used yet
//	input.taken           the input went into the histories, or the user withdrew it
//	usage.changed         what one request cost; never taken back
//	file.changed          what the model knows of a file now; source user_edited: a change by someone else that the model
//	                      was shown
//	checkpoint.saved      what files held at a moment has a name now
//	checkpoint.restoring  files are about to be restored: the intent
//	checkpoint.restored   the outcome of that
//	subtask.started       this task is about to start a child: its id, the call, the mode
//	subtask.ended         the child's end, in one commit with the outcome of the call
//	foreign.imported      another program's change to a history, taken in message by message
//	foreign.refused       a state of another program that is kept and not applied, and the reason
//
// # Messages
//
// A message keeps its number for ever; both histories count together. Its body is spelled out in the event (raw), is a
// blob, or is composed of pieces that the journal already holds (compose): literal JSON, the saved text of a message,
// the result block of a call. So the log holds a streamed reply and a tool's result once. An event that tags messages
// (condensing, truncation) does not touch their bytes: Message.Raw adds Roo's tag for as long as the summary or marker
// is part of the history.
//
// # Reading a task
//
// A folded state does not hold the bytes of the histories. For each message it keeps the facts that folding, counting
// and listing need, and the place of its JSON: an event of a commit, a range of a blob, or its pieces. Bytes are read
// on demand, each stretch of the log once. The newest few megabytes stay in memory during a fold, because a reader
// mostly wants the end of a task.
//
// A folder without a journal is read once: the pass that finds where a message ends also makes an index of its upper
// levels (esjson.SplitIndex), and Notes keep from it what a state keeps. A file that changes during the pass gives no notes
// and is read again. Mapping the files into memory was rejected: a program that truncates one would end this process.
//
// The state becomes a snapshot when a run ends, and every 256 commits during a run. The snapshot holds the runs before
// the messages, so that a reader of runs reads only them (RestoreRuns). The state keeps the runs, answers and inputs of
// all times as small entries, and leaves long texts in the journal.
//
// # Rewinds
//
// A rewind is one event. It names messages by ranges of numbers, so it is small however much it hides. The state keeps
// what was the head as a leaf (branch.go): the lists as ranges, lifted tags, outcomes of calls that differ, questions,
// queue, file records. Undo and redo swap the head with that leaf, so they are exact; they are possible until the task
// continues. A tag whose summary or marker is hidden is lifted when the message is read; nothing is written for it.
package task
