package store

import (
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/task"
)

// Summary is a task as lists and APIs show it. Its JSON is the contract's.
type Summary struct {
	ID            string          `json:"id"`
	Source        string          `json:"source"`
	Tool          string          `json:"tool"`
	Origin        string          `json:"origin"`
	Root          string          `json:"root"`
	Path          string          `json:"path"`
	Copies        []string        `json:"copies"`
	Number        int             `json:"number"`
	Title         string          `json:"title"`
	Status        string          `json:"status"`
	CreatedAt     *string         `json:"created_at"` // RFC 3339, UTC, milliseconds
	UpdatedAt     *string         `json:"updated_at"`
	TS            int64           `json:"ts"` // Roo's: Unix milliseconds
	Workspace     string          `json:"workspace"`
	Mode          string          `json:"mode"`
	Provider      string          `json:"provider"`
	Model         string          `json:"model"`
	ParentID      string          `json:"parent_id"`
	RootID        string          `json:"root_id"`
	ChildIDs      []string        `json:"child_ids"`
	Tags          []string        `json:"tags"`
	Pinned        bool            `json:"pinned"`
	Messages      MessageCounts   `json:"messages"`
	Usage         Usage           `json:"usage"`
	ContextTokens int64           `json:"context_tokens"`
	Size          int64           `json:"size"` // bytes on disk
	Damaged       []Damage        `json:"damaged"`
	OpenQuestions int             `json:"open_questions"`
	WaitingUntil  *string         `json:"waiting_until"`
	Inferred      []string        `json:"inferred"`
	Pending       bool            `json:"foreign_pending,omitempty"` // another program changed it; not taken in yet
	Received      *Received       `json:"received,omitempty"`        // it came from elsewhere
	Empty         bool            `json:"empty,omitempty"`
	Questions     []task.Question `json:"-"`
	Gone          bool            `json:"-"` // it was moved or removed while it was looked for
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

// Text says what is damaged, and what that means.
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

// Received tells where a task came from, and what it came with that does not hold here.
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

func received(s *task.State) *Received {
	r := s.Received
	if r == nil || r.Kept {
		return nil
	}
	return &Received{
		From: r.From, At: Timestamp(r.At), Approve: r.Had.Approve, Allow: r.Had.Allow, AllowTools: r.Had.Tools, BaseURL: r.Had.BaseURL,
		Queue: len(r.Queue), Questions: r.Questions, Answers: r.Answers, Notes: r.Notes(s.Settings),
	}
}
