package server

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Who has no token cannot fill the server by connecting: the oldest connections that say nothing
// go, those that have shown the token stay.
func TestIdleStrangersMakeRoom(t *testing.T) {
	g := newBench(t)
	addr := g.served(func(o *testOptions) { o.MaxConns, o.MaxStrangers, o.HeaderTimeout = 64, 16, time.Hour })
	friend := dial(t, addr)
	answers := bufio.NewReader(friend)
	ask := func() {
		t.Helper()
		fmt.Fprintf(friend, "GET /v1/sources HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", g.token)
		resp, err := http.ReadResponse(answers, nil)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("a known connection is answered %+v, %v", resp, err)
		}
		var body strings.Builder
		if err := resp.Write(&body); err != nil {
			t.Fatal(err)
		}
	}
	ask()
	strangers := make([]net.Conn, 200) // with what waits in the system's queue more than there is room for
	for i := range strangers {
		strangers[i] = dial(t, addr)
		if i%2 == 1 {
			fmt.Fprint(strangers[i], "GET /v1/tasks HTTP/1.1\r\nX-Half: ")
		}
	}
	ask()
	late := dial(t, addr)
	fmt.Fprintf(late, "GET /v1/sources HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", g.token)
	if err := late.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(late).ReadString('\n')
	if err != nil || !strings.Contains(line, "200") {
		t.Fatalf("a client that comes last is answered %q, %v", line, err)
	}
	gone := 0
	for _, c := range strangers[:64] {
		if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err != nil && !strings.Contains(err.Error(), "timeout") {
			gone++
		}
	}
	if gone != 64 {
		t.Errorf("%d of the first 64 strangers are gone", gone)
	}
	ask()
}
