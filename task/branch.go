package task

import "encoding/json"

// Branch is a former head: the histories before a rewind, or before the head moved to another branch. All its
// messages are kept.
type Branch struct {
	Seq  uint64 // of the commit that left it; it names the branch
	At   int64  // of that commit; Unix milliseconds
	Why  string // why the head left it: rewind, edit, remove, branch
	By   string `json:",omitempty"` // the tool that did it, when it was not Roost
	Leaf Leaf
}

// Leaf is a version of the histories: everything that a rewind moves. It names messages and does not hold them, so it
// stays small for long histories.
type Leaf struct {
	Seq       uint64 // the commit at which the head left it
	UI, API   []Run64
	NoSummary []Run64 `json:",omitempty"` // messages whose tags are lifted
	NoMarker  []Run64 `json:",omitempty"`
	Ends      []End   `json:",omitempty"` // of calls that are not the same on all branches
	Questions []*Question
	Answered  []Answered
	Queue     []InputQueued
	QueuedAt  map[string]uint64 `json:",omitempty"`
	Files     []Run64           `json:",omitempty"` // indexes into the list of all records, from 1
	Failures  int
	Run       string `json:",omitempty"`
	Waiting   string `json:",omitempty"`
	Rewound   bool   `json:",omitempty"`
}

// Run64 is a range of numbers, both ends included. A range of messages means those of one history.
type Run64 [2]uint64

// End is the outcome of a call on one branch.
type End struct {
	Call     int // its place in State.Calls
	Started  bool
	Replay   string
	Before   map[string]string `json:",omitempty"`
	UI       uint64
	Process  *ToolProcess  `json:",omitempty"`
	Finished *ToolFinished `json:",omitempty"`
	At       place

	away bool // Finished.Result is not in memory
}

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// packed returns indexes, from 1, as ranges.
func packed(list []int) []Run64 {
	var out []Run64
	for _, i := range list {
		at := uint64(i) + 1
		if n := len(out) - 1; n >= 0 && out[n][1]+1 == at {
			out[n][1] = at
			continue
		}
		out = append(out, Run64{at, at})
	}
	return out
}

func unpacked(runs []Run64, most int) []int {
	var out []int
	for _, r := range runs {
		for at := max(r[0], 1); at <= r[1] && at <= uint64(most) && len(out) < most; at++ {
			out = append(out, int(at)-1)
		}
	}
	return out
}

// plainEnd is End without its methods.
type plainEnd End

// MarshalJSON leaves the result out: Call.Result reads it from the log.
func (e End) MarshalJSON() ([]byte, error) {
	if e.Finished != nil {
		done := *e.Finished
		done.Result = nil
		e.Finished = &done
	}
	return json.Marshal(plainEnd(e))
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (e *End) UnmarshalJSON(data []byte) error {
	err := json.Unmarshal(data, (*plainEnd)(e))
	if e.Finished != nil {
		e.Finished.Result, e.away = nil, true // without the null that replaces it in the JSON
	}
	return err
}
