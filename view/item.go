package view

// Class is the role of an item for its reader.
type Class string

// The classes of items.
const (
	User      Class = "user"      // text of the user
	Model     Class = "model"     // text of the model
	Reasoning Class = "reasoning" // reasoning of the model
	Tool      Class = "tool"      // a tool call, requested or finished
	Output    Class = "output"    // the result of a command or a tool
	Question  Class = "question"  // something that the user must decide
	Result    Class = "result"    // the result of the task
	Request   Class = "request"   // a request to the model and what it cost
	Note      Class = "note"      // housekeeping: resumed, condensed, checkpoint
	Failure   Class = "failure"   // something went wrong
	Appended  Class = "aside"     // what the program added for the model
	Unknown   Class = "unknown"   // a kind that this version does not know
)

// Item is one message, or one block of a message, for display.
type Item struct {
	Number  int    // number in its visible history, from 1; 0 for parts
	TS      int64  // Unix milliseconds, 0 when the message has none
	Kind    string // "say:text", "ask:tool", "assistant", "tool_use", ...
	Class   Class
	Title   string // one line; may be empty when there is a Body
	Body    string // any number of lines
	Diff    bool   // Body is a unified diff
	Choices []string
	Images  int
	// Pictures describes each image: its kind and, if known, its size.
	Pictures []string
	// Data are the data: addresses of the images, "" for one without bytes; nil when none has bytes.
	Data    []string
	Partial bool // it was still being streamed when it was last written
	Call    string
	Parts   []Item // blocks of a model message, or the result of a tool call
}
