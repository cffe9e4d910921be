package server

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/service"
)

// A revoked device is out at once, with the stream that it follows, and the others stay. This holds over a restart.
func TestARevokedDeviceIsOutAtOnce(t *testing.T) {
	g := newBench(t)
	lost, kept := g.logIn(), g.logIn()
	as := func(c *http.Cookie) []string { return []string{"Authorization: ", "Cookie: " + c.Name + "=" + c.Value} }
	var list api.Page[api.Device]
	g.did(200, &list, "GET", "/v1/devices", "", as(lost)...)
	if len(list.Items) != 2 {
		t.Fatalf("got %d devices, want 2: %+v", len(list.Items), list.Items)
	}
	id := strings.Split(lost.Value, ".")[0]
	for _, d := range list.Items {
		if d.Name != "Firefox on Linux" || d.Address != "127.0.0.1" || d.Current != (d.ID == id) || d.Connected != d.Current {
			t.Errorf("got %+v, want Firefox on Linux at 127.0.0.1, current and connected only if it is %s", d, id)
		}
	}
	s := g.follow("/v1/events", as(lost)...)
	other := g.follow("/v1/events", as(kept)...)
	g.refused(404, "no_such_device", "DELETE", "/v1/devices/nothing")
	g.did(200, nil, "DELETE", "/v1/devices/"+id, "", as(kept)...)
	if f, ok := s.next(); ok {
		t.Errorf("the stream of the revoked device goes on with %+v", f)
	}
	g.refused(401, "unauthenticated", "GET", "/v1/tasks", as(lost)...)
	g.get("/v1/tasks", as(kept)...)
	_ = other.resp.Body.Close()

	srv := fixture.Must[*Server](t)(New(Options{Service: service.New(g.store, nil, service.Options{}), Token: g.token}))
	defer srv.End()
	for c, want := range map[*http.Cookie]bool{lost: false, kept: true} {
		r := fixture.Must[*http.Request](t)(http.NewRequest("GET", "/", nil))
		r.AddCookie(c)
		if got, _ := srv.knows(r); got != want {
			t.Errorf("after a restart: the device %s is known: %v, want %v", c.Value[:8], got, want)
		}
	}
}

func TestDevicesAreNamed(t *testing.T) {
	g := newBench(t)
	c := g.logIn()
	id := strings.Split(c.Value, ".")[0]
	patch := func(status int, body string) {
		t.Helper()
		if resp := g.send("PATCH", "/v1/devices/"+id, body); resp.StatusCode != status {
			t.Errorf("PATCH %s: got %s, want %d", body, resp.Status, status)
		}
	}
	patch(200, `{"name":" my phone "}`)
	for _, wrong := range []string{`{"name":""}`, `{"name":"a\nb"}`, `{"name":"a\u202eb"}`, `{"name":"` + strings.Repeat("x", 61) + `"}`, `{}`} {
		patch(422, wrong)
	}
	// A browser that is logged in and follows another link is the same device.
	g.ask("GET", fixture.Must[string](t)(g.srv.LoginPath(context.Background())), "Authorization: ", "Cookie: "+c.Name+"="+c.Value)
	var list api.Page[api.Device]
	g.did(200, &list, "GET", "/v1/devices", "")
	if len(list.Items) != 1 || list.Items[0].Name != "my phone" {
		t.Errorf("got %+v, want one device, my phone", list.Items)
	}
}

// What the file of the devices lacks is logged out.
func TestALostFileOfDevicesLogsOut(t *testing.T) {
	for name, spoil := range map[string]func(string) error{
		"gone":    os.Remove,
		"damaged": func(file string) error { return os.WriteFile(file, []byte("{"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			g := newBench(t)
			c := g.logIn()
			file := filepath.Join(g.store.Root(), "server", "devices.json")
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("the file of the devices: got %v, %v, want mode 0600", info, err)
			}
			if err := spoil(file); err != nil {
				t.Fatal(err)
			}
			srv := fixture.Must[*Server](t)(New(Options{Service: service.New(g.store, nil, service.Options{}), Token: g.token}))
			defer srv.End()
			r := fixture.Must[*http.Request](t)(http.NewRequest("GET", "/", nil))
			r.AddCookie(c)
			if ok, _ := srv.knows(r); ok {
				t.Error("a device that is not on disk is in")
			}
		})
	}
}

// A link that nobody followed in its time does not work.
func TestALogInLinkEnds(t *testing.T) {
	now := time.Now()
	g := newBench(t, func(o *testOptions) { o.Now = func() time.Time { return now } })
	link := fixture.Must[string](t)(g.srv.LoginPath(context.Background()))
	now = now.Add(10 * time.Minute)
	g.refused(401, "login_used", "GET", link, "Authorization: ")
}
