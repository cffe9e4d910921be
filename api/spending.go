package api

// By is what spending is grouped by.
type Grouping string

// What spending can be grouped by.
const (
	ByDay       Grouping = "day"       // when the request was sent, in the caller's time zone
	ByModel     Grouping = "model"     // provider/model
	ByWorkspace Grouping = "workspace" // the task's folder
	ByTask      Grouping = "task"
	ByTool      Grouping = "tool" // the tools that the reply called; its calls share the cost of a request
)

// Groupings are all of them.
var Groupings = []Grouping{ByDay, ByModel, ByWorkspace, ByTask, ByTool}

// Totals are what was spent, in groups that add up to the total: a subtask counts
// once, with itself.
type Totals struct {
	By    Grouping        `json:"by"`
	Items []SpendingGroup `json:"items"`
	Total SpendingGroup   `json:"total"`
}

// Group is one group.
type SpendingGroup struct {
	Key      string `json:"key"`             // a day, provider/model, folder, task id or tool; "" = not known
	Title    string `json:"title,omitempty"` // of a task
	Source   string `json:"source,omitempty"`
	ParentID string `json:"parent_id,omitempty"`
	Tasks    int    `json:"tasks"`    // that spent something in this group
	Requests int    `json:"requests"` // a request that called two tools counts for both
	Unpriced int    `json:"unpriced"` // requests whose price is unknown
	Usage    Usage  `json:"usage"`

	// WithChildren is a task's own usage and that of all its descendants. These
	// overlap and do not add up to the total.
	WithChildren *Usage `json:"with_children,omitempty"`
}
