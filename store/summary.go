package store

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/cost"
	"github.com/roost-dev/roost/store/infer"
	"github.com/roost-dev/roost/store/intake"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/usage"
)

// summarise gives a task's row. Everything in it is derived.
func summarise(v *View) api.Summary {
	s, ref := v.State, v.Ref
	name, err := title(s)
	if err != nil {
		s.Problems = append(s.Problems, task.Problem{Reason: err.Error()})
	}
	tasks, _ := roofmt.PlaceOf(ref.Dir)
	sum := api.Summary{
		ID: ref.ID, Source: ref.Source, Tool: ref.Tool, Origin: s.Origin,
		Root: filepath.Dir(tasks), Path: ref.Dir,
		Number: s.Number, Title: name,
		Workspace: s.Settings.Workspace, Mode: s.Settings.Mode,
		Provider: s.Settings.Provider, Model: s.Settings.Model,
		ParentID: s.Parent, RootID: s.RootTask,
		Messages: api.MessageCounts{UI: len(s.UI()), API: len(s.API())},
		Tags:     slices.Clone(s.Tags), Pinned: s.Pinned,
		OpenQuestions: len(s.Questions),
		Pending:       len(v.Pending) > 0,
		Received:      received(s),
	}
	if sum.Provider+sum.Model == "" && s.Adopted != nil { // what another tool asked is no setting of ours
		sum.Provider, _ = esjson.GetString(s.Adopted.Item, "provider")
		sum.Model, _ = esjson.GetString(s.Adopted.Item, "modelId")
	}
	updated := s.UpdatedAt
	if v.Log == nil {
		updated = max(updated, s.LastTS()) // nothing of ours says when it changed
	}
	sum.CreatedAt, sum.UpdatedAt = Timestamp(s.CreatedAt), Timestamp(updated)
	sum.WaitingUntil = Timestamp(s.WaitingUntil)
	for _, c := range s.Children {
		sum.ChildIDs = append(sum.ChildIDs, c.ID)
	}
	var tokens usage.Tokens
	for _, m := range s.UI() {
		if spent, ok := m.Spent(); ok {
			spent.AddTo(&tokens)
		}
	}
	sum.ContextTokens = int64(tokens.ContextTokens)
	sum.Usage = cost.TallyOf(s).Usage()
	if sum.TS = rooTS(s); sum.TS <= 0 {
		sum.TS = infer.TimeOfID(ref.ID)
	}
	if sum.CreatedAt == nil {
		sum.CreatedAt = Timestamp(infer.TimeOfID(ref.ID))
	}
	if v.Log == nil || s.Adopted != nil {
		from := ref.Dir
		if s.Adopted != nil && s.Adopted.Dir != "" {
			from = s.Adopted.Dir
		}
		if s.Adopted != nil {
			sum.Origin = roofmt.SaidOrigin(s.Adopted.Item)
		}
		if sum.Origin == "" {
			sum.Origin = roofmt.PlaceOrigin(from)
			sum.Inferred = append(sum.Inferred, "origin")
		}
	}
	sum.Status = status(v, sum.Origin)
	switch {
	case sum.Tool != "" && (!ref.Own || s.Adopted == nil):
	case v.Folder != nil:
		sum.Tool = string(v.Folder.Origin.Tool)
		sum.Inferred = append(sum.Inferred, "tool")
	case s.Adopted != nil:
		sum.Tool = s.Adopted.Tool
		sum.Inferred = append(sum.Inferred, "tool")
	}
	sum.Size = v.size
	if v.Folder != nil {
		for _, loss := range v.Folder.Losses {
			if v.Log != nil {
				continue // the journal is the truth; the files are made again from it
			}
			sum.Damaged = append(sum.Damaged, api.Damage{File: filepath.Join(ref.Dir, loss.File), Problem: loss.Problem, Recovered: loss.Recovered})
		}
		sum.Empty = v.Log == nil && v.Folder.Empty()
		if v.Log == nil && len(intake.Item(v.Folder)) == 0 && !sum.Empty {
			sum.Inferred = append(sum.Inferred, "title", "ts")
		}
	}
	for _, p := range s.Problems {
		if v.Log != nil {
			sum.Damaged = append(sum.Damaged, api.Damage{
				File: filepath.Join(ref.Log, "journal.jsonl"), Problem: p.Reason,
				Lost: lost(p),
			})
		}
	}
	for _, change := range v.Pending {
		if change.Refused != "" {
			sum.Damaged = append(sum.Damaged, api.Damage{
				File: filepath.Join(ref.Dir, change.File), Problem: change.Refused,
				Recovered: "all messages are in the journal",
			})
		}
	}
	sum.Empty = sum.Empty || v.Unborn
	infer.Environment(&sum, s)
	// Half of a surrogate pair is no text: what has one would not come back from the
	// kept rows as it went in.
	for _, text := range []*string{&sum.Title, &sum.Workspace, &sum.Mode, &sum.Provider, &sum.Model} {
		*text = strings.ToValidUTF8(*text, "\ufffd")
	}
	return sum.Filled()
}

func lost(p task.Problem) string {
	if p.Seq == 0 {
		return ""
	}
	return fmt.Sprintf("commit %d", p.Seq)
}

func title(s *task.State) (string, error) {
	if s.Title != "" {
		return s.Title, nil
	}
	if ui := s.UI(); len(ui) > 0 && !ui[0].Missing && !infer.TooLong(ui[0]) {
		raws, err := s.Raws(ui[:1])
		if err != nil {
			return "", err
		}
		text, _ := esjson.GetString(raws[0], "text")
		if text = strings.TrimSpace(text); text != "" {
			return text, nil
		}
	}
	if s.Adopted != nil {
		if text, ok := esjson.GetString(s.Adopted.Item, "task"); ok {
			return text, nil
		}
	}
	return infer.Title(s), nil
}

// rooTS is the time of the last row that is not a resume question.
func rooTS(s *task.State) int64 {
	ui := s.UI()
	for i := len(ui) - 1; i >= 0; i-- {
		switch ui[i].Kind() {
		case "ask:resume_task", "ask:resume_completed_task":
			continue
		}
		if ts := ui[i].TS(); ts > 0 {
			return ts
		}
	}
	if s.Adopted != nil {
		if ts, ok := esjson.GetInt(s.Adopted.Item, "ts"); ok {
			return ts
		}
	}
	return max(s.LastTS(), s.CreatedAt)
}

// status is derived from the newest run; a run that nobody owns was interrupted.
func status(v *View, origin string) string {
	s := v.State
	switch {
	case s.Restoring != nil:
		return "restoring" // files are being put back: who works on it next finishes that
	case s.Run == nil && s.Fork != nil && foreignStatus(s, origin) == "interrupted":
		return "idle" // nothing of its own began yet
	case s.Run == nil:
		return foreignStatus(s, origin)
	}
	switch {
	case s.Awaited() != nil:
		return "delegated"
	case s.Run.Waiting != "":
		return "waiting"
	case s.Run.Outcome != "" && (s.Run.Rewound || wentOnElsewhere(s)): // what it ended in is no more
		return foreignStatus(s, origin)
	case s.Run.Outcome == "limit", s.Run.Outcome == "denied":
		return "interrupted"
	case s.Run.Outcome != "":
		return s.Run.Outcome
	case s.Run.Waits():
		return "queued"
	}
	if _, held := filelog.Holder(v.Ref.Log); held {
		if len(s.Questions) > 0 {
			return "waiting" // its run waits in memory
		}
		return "running"
	}
	return "interrupted"
}

// wentOnElsewhere: another program wrote the newest row. Every run of ours writes one when it begins.
func wentOnElsewhere(s *task.State) bool {
	ui := s.UI()
	return len(ui) > 0 && ui[len(ui)-1].Foreign
}

// foreignStatus judges by the last rows, as Roo does.
func foreignStatus(s *task.State, origin string) string {
	ui := s.UI()
	for i := len(ui) - 1; i >= 0; i-- {
		switch ui[i].Kind() {
		case "ask:resume_task", "ask:resume_completed_task":
			continue
		case "ask:completion_result":
			return "completed"
		case "say:completion_result":
			// Roo's two files are saved one after the other, and its CLI ends without asking.
			if s.Completes() || origin == roofmt.CLIOrigin && !ui[i].Partial() {
				return "completed"
			}
		}
		if infer.Completed(s) {
			return "completed"
		}
		return "interrupted"
	}
	if len(s.API()) > 0 {
		if s.Adopted != nil {
			switch said, _ := esjson.GetString(s.Adopted.Item, "status"); said {
			case "completed", "failed", "cancelled": // what else it says is of a program that may be gone
				return said
			}
		}
		return "interrupted"
	}
	return "idle"
}

// Timestamp is a time in Unix milliseconds as RFC 3339; nil when there is none.
func Timestamp(ms int64) *string {
	if ms <= 0 {
		return nil
	}
	text := time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
	return &text
}

func received(s *task.State) *api.Received {
	r := s.Received
	if r == nil || r.Kept {
		return nil
	}
	return &api.Received{
		From: r.From, At: Timestamp(r.At), Approve: r.Had.Approve, Allow: r.Had.Allow, AllowTools: r.Had.Tools, BaseURL: r.Had.BaseURL,
		Queue: len(r.Queue), Questions: r.Questions, Answers: r.Answers, Notes: r.Notes(s.Settings),
	}
}
