//go:build unix

package cli

import (
	"bytes"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// Several commands that open the page at one moment start one server, and each prints a link of it.
func TestOpenAtOneMoment(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.slow()
	t.Cleanup(func() { _ = s.command("server", "stop").Run() })
	links, problems := make([]string, 4), make([]bytes.Buffer, 4)
	var all sync.WaitGroup
	for i := range links {
		all.Go(func() {
			cmd := s.command("open", "--print")
			cmd.Stderr = &problems[i]
			out, err := cmd.Output()
			if err != nil {
				problems[i].WriteString(err.Error())
			}
			links[i] = strings.TrimSpace(string(out))
		})
	}
	all.Wait()
	hosts, started := map[string]bool{}, 0
	for i, link := range links {
		u, err := url.Parse(link)
		if err != nil || u.Host == "" {
			t.Errorf("got the link %q, want one that logs in\n%s", link, problems[i].String())
			continue
		}
		hosts[u.Host] = true
		started += strings.Count(problems[i].String(), "started a server")
	}
	if len(hosts) != 1 || started != 1 {
		t.Errorf("got links to %d servers, of which %d were started, want one: %v", len(hosts), started, hosts)
	}
}
