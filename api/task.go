package api

import (
	"math"

	"github.com/roost-dev/roost/money"
)

// AddClamped adds amounts that are not negative. A sum that overflows is the largest int64.
func AddClamped(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Add adds a part of the same request to a usage. An unknown cost stays unknown.
func (u *Usage) Add(more Usage) {
	u.TokensIn, u.TokensOut = AddClamped(u.TokensIn, more.TokensIn), AddClamped(u.TokensOut, more.TokensOut)
	u.CacheReads, u.CacheWrites = AddClamped(u.CacheReads, more.CacheReads), AddClamped(u.CacheWrites, more.CacheWrites)
	if u.Cost != nil && more.Cost != nil {
		sum := money.USD(AddClamped(int64(*u.Cost), int64(*more.Cost)))
		u.Cost = &sum
	}
}

// Micros is the cost in micro-dollars; 0 when it is unknown.
func (u Usage) Micros() int64 {
	if u.Cost == nil {
		return 0
	}
	return int64(*u.Cost)
}

// Tokens are all tokens.
func (u Usage) Tokens() int64 { return u.TokensIn + u.TokensOut + u.CacheReads + u.CacheWrites }

// Filled makes absent lists empty ones: JSON shows [] and not null.
func (t Summary) Filled() Summary {
	for _, list := range []*[]string{&t.Copies, &t.ChildIDs, &t.Tags, &t.Inferred} {
		if *list == nil {
			*list = []string{}
		}
	}
	if t.Damaged == nil {
		t.Damaged = []Damage{}
	}
	return t
}

// OwnSource is the source of the tasks in Roost's own root.
const OwnSource = "roost"

// Summary is a task as lists and APIs show it. Its JSON is the contract's.
type Summary struct {
	ID            string        `json:"id"`
	Source        string        `json:"source"`
	Tool          string        `json:"tool"`
	Origin        string        `json:"origin"`
	Root          string        `json:"root"`
	Path          string        `json:"path"`
	Copies        []string      `json:"copies"`
	Number        int           `json:"number"`
	Title         string        `json:"title"`
	Status        string        `json:"status"`
	CreatedAt     *string       `json:"created_at"` // RFC 3339, UTC, milliseconds
	UpdatedAt     *string       `json:"updated_at"`
	TS            int64         `json:"ts"` // Roo's: Unix milliseconds
	Workspace     string        `json:"workspace"`
	Mode          string        `json:"mode"`
	Provider      string        `json:"provider"`
	Model         string        `json:"model"`
	ParentID      string        `json:"parent_id"`
	RootID        string        `json:"root_id"`
	ChildIDs      []string      `json:"child_ids"`
	Tags          []string      `json:"tags"`
	Pinned        bool          `json:"pinned"`
	Messages      MessageCounts `json:"messages"`
	Usage         Usage         `json:"usage"`
	ContextTokens int64         `json:"context_tokens"`
	Size          int64         `json:"size"` // bytes on disk
	Damaged       []Damage      `json:"damaged"`
	OpenQuestions int           `json:"open_questions"`
	WaitingUntil  *string       `json:"waiting_until"`
	Inferred      []string      `json:"inferred"`
	Pending       bool          `json:"foreign_pending,omitempty"` // another program changed it; not taken in yet
	Received      *Received     `json:"received,omitempty"`        // it came from elsewhere
	Empty         bool          `json:"empty,omitempty"`
	Gone          bool          `json:"-"` // it was moved or removed while it was looked for
}

// MessageCounts are the lengths of the visible histories.
type MessageCounts struct {
	UI  int `json:"ui"`
	API int `json:"api"`
}

// Usage is all that was ever spent.
type Usage struct {
	TokensIn    int64      `json:"tokens_in"`
	TokensOut   int64      `json:"tokens_out"`
	CacheWrites int64      `json:"cache_writes"`
	CacheReads  int64      `json:"cache_reads"`
	Cost        *money.USD `json:"cost"` // decimal string, null = unknown
}

// Damage is something of a task that could not be read.
type Damage struct {
	File      string `json:"file"`
	Problem   string `json:"problem"`
	Recovered string `json:"recovered"`
	Lost      string `json:"lost,omitempty"`
}

// Text describes the damage and its consequence.
func (d Damage) Text() string {
	text := d.File + ": " + d.Problem
	if d.Recovered != "" {
		text += "; recovered: " + d.Recovered
	}
	if d.Lost != "" {
		text += "; lost: " + d.Lost
	}
	return text
}

// Received is the origin of a task that came from elsewhere, and what it brought that does not hold here.
type Received struct {
	From       string   `json:"from"` // import, unsigned, elsewhere, altered
	At         *string  `json:"at"`
	Approve    string   `json:"approve,omitempty"`
	Allow      []string `json:"allow,omitempty"`
	AllowTools []string `json:"allow_tools,omitempty"`
	BaseURL    string   `json:"base_url,omitempty"`
	Queue      int      `json:"queue,omitempty"`     // messages that waited, and are not sent
	Questions  int      `json:"questions,omitempty"` // that were open
	Answers    int      `json:"answers,omitempty"`   // that were recorded and not used
	Notes      []string `json:"notes,omitempty"`     // the same in words
}

// Plus adds two usages. The cost is unknown only when it is in both: what has no
// price does not hide what has one.
func (u Usage) Plus(other Usage) Usage {
	out := Usage{
		TokensIn: AddClamped(u.TokensIn, other.TokensIn), TokensOut: AddClamped(u.TokensOut, other.TokensOut),
		CacheWrites: AddClamped(u.CacheWrites, other.CacheWrites), CacheReads: AddClamped(u.CacheReads, other.CacheReads),
	}
	if u.Cost != nil || other.Cost != nil {
		cost := money.USD(AddClamped(u.Micros(), other.Micros()))
		out.Cost = &cost
	}
	return out
}

// Less is what is left of a usage without another one.
func (u Usage) Less(other Usage) Usage {
	out := Usage{
		TokensIn: u.TokensIn - other.TokensIn, TokensOut: u.TokensOut - other.TokensOut,
		CacheWrites: u.CacheWrites - other.CacheWrites, CacheReads: u.CacheReads - other.CacheReads,
	}
	if cost := money.USD(u.Micros() - other.Micros()); cost != 0 {
		out.Cost = &cost
	}
	return out
}

// NonZero reports whether anything was spent.
func (u Usage) NonZero() bool {
	return u.TokensIn != 0 || u.TokensOut != 0 || u.CacheWrites != 0 || u.CacheReads != 0 || u.Micros() != 0
}

// Share is the i-th of n equal parts. The first ones take what cannot be divided,
// so that the parts add up.
func (u Usage) Share(i, n int) Usage {
	part := func(whole int64) int64 {
		if whole < 0 { // a file that takes costs back; there is no even way
			if i > 0 {
				return 0
			}
			return whole
		}
		p := whole / int64(n)
		if int64(i) < whole%int64(n) {
			p++
		}
		return p
	}
	out := Usage{
		TokensIn: part(u.TokensIn), TokensOut: part(u.TokensOut),
		CacheWrites: part(u.CacheWrites), CacheReads: part(u.CacheReads),
	}
	if u.Cost != nil {
		cost := money.USD(part(int64(*u.Cost)))
		out.Cost = &cost
	}
	return out
}

// Efforts are the words for how much a model thinks.
var Efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// What the model gets of a file that it knows and that another program or the user changed.
const (
	StaleTell = "tell" // that it changed, and a difference that is small
	StaleRead = "read" // its new content
)

// ValidID reports whether id may name a task folder that we open by id. Other folder names are listed, and can be
// imported under a new id.
//
// The form is ^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$, without a regular expression: a list checks every folder.
func ValidTaskID(id string) bool {
	if id == "" || len(id) > 128 {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case i > 0 && (c == '.' || c == '_' || c == '-'):
		default:
			return false
		}
	}
	return true
}
