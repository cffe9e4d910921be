package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// chronicle is what a task's journal says of its runs, questions and words, of all times.
// A folded state knows the newest run and what is open; who asks for an older run, whose
// answer it was, or whether words came before, needs the whole log. It is gone through once
// in a process and then read on from where it was left. Nothing depends on it being kept.
type chronicle struct {
	mu    sync.Mutex
	last  Mark  // the newest event that was read
	at    int64 // when its commit was made
	runs  []*chapter
	known map[string]*chapter
	words map[string]string               // input -> the run that it came to; "" = the one that began next
	said  map[string]task.QuestionClosed  // the answers that were given, by question
	by    map[string]string               // message -> the question that it answered
	open  map[string]Mark                 // questions that are open, and the event that opened each
	asked map[string]*chapter             // by question: the run that asked
	todo  map[string]bool                 // words that wait
	texts map[string]*task.QuestionOpened // of open questions
}

// chapter is one run in it.
type chapter struct {
	RunInfo
	before  Mark   // the event before the run's first one
	waiting string // the question that it waits for, with its task
}

func newChronicle() *chronicle {
	return &chronicle{
		known: map[string]*chapter{}, words: map[string]string{}, said: map[string]task.QuestionClosed{}, by: map[string]string{},
		open: map[string]Mark{}, asked: map[string]*chapter{}, todo: map[string]bool{}, texts: map[string]*task.QuestionOpened{},
	}
}

// mostChronicles bounds how many tasks' are kept.
const mostChronicles = 1024

// chronicle reads a task's up to the head of its log and lends it to f. A task without a
// journal has an empty one.
func (e *Engine) chronicle(ctx context.Context, ref store.Ref, f func(*chronicle)) error {
	key := ref.Log
	e.desk.mu.Lock()
	c := e.desk.told[key]
	if c == nil {
		if e.desk.told == nil {
			e.desk.told = map[string]*chronicle{}
		}
		for other := range e.desk.told { // any one will do
			if len(e.desk.told) < mostChronicles {
				break
			}
			delete(e.desk.told, other)
		}
		c = newChronicle()
		e.desk.told[key] = c
	}
	e.desk.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.read(ctx, e.store, ref); err != nil {
		return err
	}
	f(c)
	return nil
}

func (c *chronicle) reset() {
	n := newChronicle()
	c.last, c.at, c.runs, c.known, c.words, c.said = Mark{}, 0, nil, n.known, n.words, n.said
	c.by, c.open, c.asked, c.todo, c.texts = n.by, n.open, n.asked, n.todo, n.texts
}

// read reads on. A log that does not hold the commit that was read last is another one.
func (c *chronicle) read(ctx context.Context, s *store.Store, ref store.Ref) error {
	log, err := s.Follow(ref)
	if errors.Is(err, journal.ErrNotFound) {
		c.reset()
		return nil
	}
	if err != nil {
		return err
	}
	defer log.Close()
	if c.last.Seq > 0 {
		same := false
		for commit, err := range log.Read(ctx, c.last.Seq) {
			if err == nil && !same {
				if same = commit.Seq == c.last.Seq && commit.Epoch == c.last.Epoch && commit.At == c.at; same {
					continue
				}
				break
			}
			if err := c.take(ref, commit, err); err != nil {
				return err
			}
		}
		if same {
			return nil
		}
		c.reset()
	}
	for commit, err := range log.Read(ctx, 1) {
		if err := c.take(ref, commit, err); err != nil {
			return err
		}
	}
	return nil
}

// take reads one commit.
func (c *chronicle) take(ref store.Ref, commit journal.Commit, err error) error {
	var lost *journal.DamageError
	if errors.As(err, &lost) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("task %s: %w", ref.ID, err)
	}
	for i, raw := range commit.Events {
		if e, ok := told(raw); ok {
			c.fold(ref, e, commit, i)
		}
		c.last = Mark{Epoch: commit.Epoch, Seq: commit.Seq, Index: i}
	}
	c.at = commit.At
	return nil
}

// told decodes the events that a chronicle is about.
func told(raw []byte) (task.Event, bool) {
	rest, ok := bytes.CutPrefix(raw, []byte(`{"type":"`))
	if !ok {
		return nil, false
	}
	for _, kind := range []string{"run.", "question.", "input.", `usage.changed"`, `turn.ended"`} {
		if bytes.HasPrefix(rest, []byte(kind)) {
			e, err := task.Decode(raw)
			return e, err == nil
		}
	}
	return nil, false
}

func (c *chronicle) fold(ref store.Ref, e task.Event, commit journal.Commit, i int) {
	newest := c.newest()
	switch e := e.(type) {
	case task.RunQueued:
		ch := c.chapter(ref, e.Run)
		if ch.Started == 0 && ch.Queued == 0 {
			ch.Queued, ch.Settings = commit.At, e.Settings
		}
	case task.RunStarted:
		ch := c.chapter(ref, e.Run)
		if ch.Started == 0 {
			ch.Started = commit.At
		}
		ch.Settings, ch.waiting = e.Settings, ""
		ch.Outcome, ch.Code, ch.Reason, ch.Ended = "", "", "", 0
	case task.RunWaiting:
		ch := c.chapter(ref, e.Run)
		of := ref.ID
		if e.Child != "" {
			of = e.Child
		}
		ch.waiting = of + "." + e.Question
	case task.RunEnded:
		ch := c.chapter(ref, e.Run)
		ch.Outcome, ch.Code, ch.Reason, ch.Ended, ch.waiting = e.Outcome, e.Code, e.Reason, commit.At, ""
	case task.TurnEnded:
		if newest != nil {
			newest.Turns++
		}
	case task.UsageChanged:
		switch {
		case newest == nil:
		case e.CostMicros == nil:
			newest.CostKnown = false
		default:
			newest.CostMicros += *e.CostMicros
		}
	case task.QuestionOpened:
		delete(c.said, e.Question)
		c.open[e.Question] = Mark{Epoch: commit.Epoch, Seq: commit.Seq, Index: i}
		c.asked[e.Question] = newest
		c.texts[e.Question] = &e
	case task.QuestionClosed:
		delete(c.open, e.Question)
		delete(c.texts, e.Question)
		if e.Reason == "" {
			c.said[e.Question] = e
			if e.Input != "" {
				c.by[e.Input] = e.Question
			}
		}
		if newest != nil && newest.waiting == ref.ID+"."+e.Question {
			newest.waiting = ""
		}
	case task.InputQueued:
		if _, known := c.words[e.Input]; !known {
			c.words[e.Input] = ""
			if newest != nil && newest.Outcome == "" {
				c.words[e.Input] = newest.ID
			}
		}
		c.todo[e.Input] = true
	case task.InputTaken:
		delete(c.todo, e.Input)
	}
}

// chapter is a run's, a new one when it was not told of yet.
func (c *chronicle) chapter(ref store.Ref, run string) *chapter {
	if ch := c.known[run]; ch != nil {
		return ch
	}
	ch := &chapter{RunInfo: RunInfo{ID: run, Ref: ref, CostKnown: true}, before: c.last}
	c.known[run] = ch
	c.runs = append(c.runs, ch)
	for input, of := range c.words {
		if of == "" {
			c.words[input] = run
		}
	}
	return ch
}

// newest is the last run, nil when there was none.
func (c *chronicle) newest() *chapter {
	if len(c.runs) == 0 {
		return nil
	}
	return c.runs[len(c.runs)-1]
}
