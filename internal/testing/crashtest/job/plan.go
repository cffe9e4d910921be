package job

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Job is what is to be done, as data.
type Job struct {
	Plans  map[string][]Step // a task follows the plan that its first words name
	Window int               // bytes of a longest request; 0 = any
	Says   []Said            // what the person answers
}

// Step is one reply of the model.
type Step struct {
	Text   string
	Think  string
	Calls  []Call
	Mend   []Call // makes sure of what Calls does, and changes nothing that is so already
	Faults []Fault
	Pause  time.Duration // between the events of the stream
}

// Call is one call of a tool. In the texts of its input "$ID" stands for the call's id
// and "$ARTIFACT" for the newest output of a command that was kept.
type Call struct {
	Tool  string
	Input map[string]any
	Want  string // is in the result
}

// Said is what the person answers to the questions that contain some words.
type Said struct{ To, Words string }

// Fault is what one request gets instead of its reply.
type Fault string

// The faults.
const (
	RateLimited Fault = "429"           // come back in a moment
	Quota       Fault = "quota"         // come back in ten minutes
	Overloaded  Fault = "overloaded"    // 529, or what the dialect has instead
	Cut         Fault = "cut"           // the connection breaks in the middle of the reply
	Broken      Fault = "error event"   // the stream says that it failed
	Silent      Fault = "short of done" // the stream ends as if it were complete
)

// first is how the first words of a task name its plan.
var first = regexp.MustCompile(`Follow the plan ([a-z]+)\.`)

// Words begin a task that follows a plan.
func Words(plan string) string { return "Follow the plan " + plan + "." }

// place is a reply of the model in the job.
type place struct {
	plan string
	step int // from 0
	try  int // 0 = the step itself; then in turn a look and a mending
}

var placed = regexp.MustCompile(`^([a-z]+)-(\d+)-(\d+)-\d+$`)

func (p place) name() string { return fmt.Sprintf("%s-%d-%d", p.plan, p.step+1, p.try) }

func (p place) id(call int) string { return fmt.Sprintf("%s-%d", p.name(), call+1) }

// placeOf reads the place off a call's id.
func placeOf(id string) (p place, ok bool) {
	m := placed.FindStringSubmatch(id)
	if m == nil {
		return p, false
	}
	step, err1 := strconv.Atoi(m[2])
	try, err2 := strconv.Atoi(m[3])
	return place{m[1], step - 1, try}, err1 == nil && err2 == nil
}

func (p place) String() string { return fmt.Sprintf("%s, step %d, try %d", p.plan, p.step+1, p.try) }

// calls are those of a place: the step's own, a look at what it is about, or what
// makes sure of it.
func (s Step) calls(try int) []Call {
	switch {
	case try == 0:
		return s.Calls
	case try%2 == 0 && len(s.Mend) > 0:
		return s.Mend
	case try%2 == 0:
		return s.Calls // once more: it is made, or there is nothing left to make
	}
	var look []Call
	for _, c := range s.Mend {
		if path, ok := c.Input["path"].(string); ok && c.Tool == "write_to_file" {
			look = append(look, Call{Tool: "read_file", Input: map[string]any{"path": path}})
		}
	}
	return append(look, Call{Tool: "list_files", Input: map[string]any{"path": ".", "recursive": true}})
}

// input is the JSON of a call's input with its variables filled in.
func (c Call) input(id, artifact string) (string, error) {
	data, err := json.Marshal(c.Input)
	if err != nil {
		return "", fmt.Errorf("write the input of %s: %w", c.Tool, err)
	}
	return strings.NewReplacer("$ID", id, "$ARTIFACT", artifact).Replace(string(data)), nil
}
