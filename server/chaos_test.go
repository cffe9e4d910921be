package server

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/service"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// roleEnv makes this test binary a server or somebody who writes a task.
const roleEnv = "ROOST_TEST_ROLE"

func play(role string) int {
	dir := os.Getenv("ROOST_TEST_DIR")
	s, err := store.Open(store.Options{Root: filepath.Join(dir, "root"), State: filepath.Join(dir, "root.state"), Cache: filepath.Join(dir, "cache"), Program: "test"})
	if err == nil {
		switch role {
		case "server":
			err = playServer(s)
		case "worker":
			err = playWorker(s)
		case "writer":
			err = playWriter(s)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, role, err)
		return 1
	}
	return 0
}

// playServer serves until it is killed.
func playServer(s *store.Store) error {
	token, err := Token(s.Root(), false)
	if err != nil {
		return err
	}
	srv, err := New(Options{Service: service.New(s, nil, service.Options{}), Token: token, Heartbeat: 200 * time.Millisecond})
	if err != nil {
		return err
	}
	l, err := listenAnywhere()
	if err != nil {
		return err
	}
	return srv.Serve(context.Background(), l)
}

// playWriter writes a task: commits of some events each, some of them large.
func playWriter(s *store.Store) error {
	commits, err := strconv.Atoi(os.Getenv("ROOST_TEST_COMMITS"))
	if err != nil {
		return err
	}
	pause, err := time.ParseDuration(cmp.Or(os.Getenv("ROOST_TEST_PAUSE"), "2ms"))
	if err != nil {
		return err
	}
	ctx := context.Background()
	owned, err := s.Create(ctx, task.Created{Origin: "cli", Number: 1, CreatedAt: time.Now().UnixMilli(), Settings: task.Settings{Workspace: "/w"}})
	if err != nil {
		return err
	}
	if err := owned.Barrier(ctx); err != nil {
		return err
	}
	fmt.Println(owned.Ref.ID)
	message := owned.State().NextMessage()
	for i := range commits {
		var events []task.Event
		for j := range 1 + i%7 {
			words := strings.Repeat(fmt.Sprintf("word %d.%d é ", i, j), 1+(i*j)%60)
			if i%97 == 50 && j == 0 {
				words = strings.Repeat("large ", 60_000) // more than a line of the log takes
			}
			raw := fmt.Appendf(nil, `{"ts":%d,"type":"say","say":"text","text":%q}`, 1700000000000+i, words)
			events = append(events, task.MessageAdded{History: task.UI, Message: message, Body: task.Body{Raw: raw}})
			message++
		}
		if err := owned.Commit(ctx, events...); err != nil {
			return err
		}
		if i%3 == 0 {
			if err := owned.Barrier(ctx); err != nil {
				return err
			}
			time.Sleep(pause)
		}
	}
	return owned.Close(ctx)
}

// Another process writes a task; the server is killed again and again; between it and
// its clients everything is cut, split and held up: each client ends with exactly the
// events of the journal, byte for byte. ROOST_CHAOS=full takes the numbers that were asked for.
func TestChaos(t *testing.T) {
	for range 4 { // on a busy machine everything may be cut before it gave anything
		enough := false
		if !t.Run("", func(t *testing.T) { enough = chaos(t) }) || enough {
			return
		}
	}
	t.Error("nothing was ever cut")
}

// chaos reports whether connections that gave events were cut often enough.
func chaos(t *testing.T) (enough bool) {
	size := stormSize{commits: 900, clients: 8, kills: 6, pause: 400}
	if testing.Short() {
		size = stormSize{commits: 300, clients: 4, kills: 3, pause: 400}
	}
	c := gather(t, size.full(2600))
	writer, out := c.writer()
	id := strings.TrimSpace(fixture.Must[string](t)(out.ReadString('\n')))
	ctx, cancel := context.WithTimeout(t.Context(), c.patience(2))
	defer cancel()
	c.follow(ctx, "/v1/tasks/"+id+"/events")
	c.rage()
	if err := writer.Wait(); err != nil {
		t.Error(err)
	}
	return c.settle(journalOf(t, c.store, id)) >= 2*c.size.clients
}

func firstDifference(want, got []frame) string {
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || want[i] != got[i] {
			var w, g frame
			if i < len(want) {
				w = want[i]
			}
			if i < len(got) {
				g = got[i]
			}
			w.Data, g.Data = w.Data[:min(len(w.Data), 300)], g.Data[:min(len(g.Data), 300)]
			return fmt.Sprintf("at %d (-want +got):\n%s", i, gocmp.Diff(w, g))
		}
	}
	return ""
}

// A stream that is cut at every byte and taken up again behind the last whole event
// gives the same as one that is not.
func TestCutAtEveryByte(t *testing.T) {
	g := newBench(t)
	want := g.events()
	resp := g.ask("GET", g.path("/events?after=0"))
	var whole bytes.Buffer
	for in := bufio.NewReader(resp.Body); ; {
		line := fixture.Must[string](t)(in.ReadString('\n'))
		if whole.WriteString(line); strings.HasPrefix(line, "id: "+want[len(want)-1].ID) {
			whole.WriteString(fixture.Must[string](t)(in.ReadString('\n')) + fixture.Must[string](t)(in.ReadString('\n')) + "\n")
			break
		}
	}
	rest := map[string][]frame{} // what comes behind each id, asked of the server once
	for i, f := range want {
		rest[f.ID] = g.follow(g.path("/events"), "Last-Event-ID: "+f.ID).take(len(want) - 1 - i)
	}
	rest[""] = want
	for cut := 0; cut <= whole.Len(); cut += 1 + cut/500 {
		var got []frame
		last := ""
		for in := bufio.NewReader(bytes.NewReader(whole.Bytes()[:cut])); ; {
			f, err := readFrame(in)
			if err != nil {
				break
			}
			got, last = append(got, f), f.ID
		}
		if diff := firstDifference(want, append(got, rest[last]...)); diff != "" {
			t.Fatalf("cut at byte %d: %s", cut, diff)
		}
	}
}
