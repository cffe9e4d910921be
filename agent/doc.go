// Package agent is the loop: build a request from the task's history, ask the model, run the tools it calls, commit
// each step, and again, until the task is completed, stopped, or needs a person.
//
// A crash loses no state of the agent: all it needs to continue is in the task's journal. Starting and restarting are
// the same code. It asks the person through an Asker and shows streamed text and notices to an Observer; both may be
// absent.
//
// # A run
//
//  1. start commits that the run began, with the person's words in both histories. Its barrier is the acknowledgement.
//  2. step derives the step from the model's history: a request, closing calls, or a nudge for a reply without calls.
//  3. A request: its row and turn.started, barrier, then the wire. Streamed text goes into the log in pieces. The whole
//     reply (rows, cost, turn.ended, message) is one commit.
//  4. A call: plan, decide (hooks included), ask if needed, tool.started, barrier, run, tool.finished with the file
//     records. When all calls of the reply are closed, one user turn refers to their results. The request that sends it
//     makes it durable.
//  5. The loop ends with attempt_completion, a question that cannot be answered, a limit, a failure or a cancel.
//
// While the disk refuses writes, the agent waits at the barrier and shows a notice. It sends no request and starts no
// tool.
//
// The user's hooks (package hook) take part in three places: when the run's start is on disk, in the decision about a
// call, and after a call before its outcome is committed. They can deny and ask, and permit nothing. Calls of Control
// tools have no hooks.
//
// # Repairs
//
// A provider would refuse the same history for ever, so the agent repairs what it sends, at most 12 times in a turn,
// each time to something smaller. What is stored stays.
//
//   - 400 with a place (messages.12.content.3, input[5], contents[4].parts[1]): the block there becomes a text.
//     llm.Locator leads from the wire to the request, contextwindow.Trace from the request to the stored block, and
//     message.withheld is in one commit with the failure.
//   - 400 without a place: what came after the last accepted request is left out on trial. The log gets it only with
//     the reply that proves the guess. Refusals about keys, money, models and settings cost no guess.
//   - Too long, or about to be: the agent asks the model for a summary of the older part (condense.go), with the same
//     request and one more text, or with the history written as a text. Without a summary it hides the older half
//     behind Roo's marker. It hides a single result or call that is most of the request alone.
//   - The provider asks for a wait of more than two minutes: the agent sends nothing until then. turn.failed holds the
//     time, the task shows it as waiting_until, and a resume asks at once.
//
// # A restart
//
// A restart takes the path of a start: step derives the step that the killed run was about to take. Besides:
//
//   - An unfinished run is closed as interrupted. Rows that Roo would remove are hidden, rows that were still streaming
//     are ended, and the resume question is shown (package resume).
//   - An open call is finished, not started or unknown (task.Call.Outcome). One that was not started runs. For an
//     unknown one the Replay of its tool decides: again (reads) runs it again, inspect (file writes) examines the file,
//     never (commands) gives the model a result with an unknown outcome. Calls of another program's run count as
//     unknown.
//   - A log that lost commits in its middle first asks the user (question.go); the log keeps the consent.
//   - The mark of a command is in the log before a process carries it. Processes that still carry it are ended.
//     One look at all processes proves nothing, so workspace/shell looks until a look is sure, up to a bound.
//   - A plan is made again, because the files may differ now. An unused answer counts if the question is the same.
//
// # The prompt
//
// The mode of a task decides what the system prompt calls the model, which tools it gets, and which calls are refused
// although the policy would allow them (by the input before a plan, and by the paths of the plan, links followed). The
// prompt is made when a run begins and when switch_mode changes the mode, and never between, so that caches hit. The
// new mode and the outcome of the call are one commit. The todo list is the newest row that shows one, as in Roo.
//
// The tools of MCP servers come after ours, sorted by server and name, and stay the same until the run ends. Call ids
// that a provider repeats get new ones before the reply is stored, so that every call has its own outcome.
package agent
