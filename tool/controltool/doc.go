// Package controltool holds the tools that steer the task instead of touching anything: ask_followup_question asks
// the user, attempt_completion ends the task with a result, switch_mode asks for another mode, update_todo_list keeps
// the task's checklist. They have no effect of their own: the result names what is wanted, and the agent acts on it.
//
// Older shapes of the suggested answers are understood: an array of strings, one string with <suggest> elements, and
// suggestions called answer or with the mode as an attribute.
package controltool
