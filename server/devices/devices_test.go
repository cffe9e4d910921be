package devices

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/internal/testing/pgtest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		pgtest.StopShared()
		os.Exit(code)
	}))
}

// each runs a test for devices in a file and for those in a database. open gives those of one place again, as after a
// restart, or as another server has them.
func each(t *testing.T, test func(t *testing.T, open func() *Devices)) {
	t.Run("a file", func(t *testing.T) {
		root := t.TempDir()
		test(t, func() *Devices { return New(root, "token", time.Now) })
	})
	t.Run("a database", func(t *testing.T) { test(t, inDatabase(t)) })
}

func inDatabase(t *testing.T) (open func() *Devices) {
	t.Helper()
	url := pgtest.Shared(t).Database(t)
	fixture.NoError(t, database.Migrate(t.Context(), url))
	return func() *Devices {
		db := fixture.Must[*database.DB](t)(database.Open(t.Context(), url))
		t.Cleanup(db.Close)
		return InDatabase(db, "token", time.Now)
	}
}

// logIn follows a link and returns the cookie.
func logIn(t *testing.T, d *Devices, link string) *http.Cookie {
	t.Helper()
	_, key, _ := strings.Cut(link, "key=")
	r := request()
	r.Header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")
	cookie, other, err := d.LogIn(r, key, "192.0.2.7")
	if err != nil || other {
		t.Fatalf("a browser that was not logged in: got another account %v, %v; want false", other, err)
	}
	return cookie
}

func link(t *testing.T, d *Devices) string {
	t.Helper()
	return fixture.Must[string](t)(d.Link(t.Context()))
}

func request(cookies ...*http.Cookie) *http.Request {
	r := httptest.NewRequest("GET", "/", nil) //nolint:noctx // Enter gives it one
	for _, c := range cookies {
		r.AddCookie(c)
	}
	return r
}

func knows(t *testing.T, d *Devices, cookies ...*http.Cookie) bool {
	t.Helper()
	_, in, err := d.Knows(request(cookies...))
	fixture.NoError(t, err)
	return in
}

func id(c *http.Cookie) string { return c.Value[:strings.IndexByte(c.Value, '.')] }

func TestDevices(t *testing.T) {
	each(t, func(t *testing.T, open func() *Devices) {
		d := open()
		if knows(t, d) || logIn(t, d, "/login?key=nothing") != nil {
			t.Error("a stranger is in")
		}
		first := link(t, d)
		c := logIn(t, d, first)
		if c == nil || logIn(t, d, first) != nil {
			t.Fatal("a link works once, and must")
		}
		other := logIn(t, d, link(t, d))
		forged := *c
		forged.Value = id(other) + c.Value[strings.IndexByte(c.Value, '.'):]
		if !knows(t, d, c) || !knows(t, d, &forged, c) || knows(t, d, &forged) {
			t.Error("the log-in does not hold, or another proof does")
		}
		in, leave, ok := d.Enter(request(c), "192.0.2.8")
		if !ok {
			t.Fatal("the device is not let in")
		}
		renamed, err := d.Rename(in.Context(), id(c), " my phone ")
		if err != nil || renamed.Name != "my phone" || !renamed.Current {
			t.Errorf("got %+v, %v, want the new name", renamed, err)
		}
		list, err := d.List(in.Context())
		if err != nil || len(list) != 2 {
			t.Fatalf("got %+v, %v, want two devices", list, err)
		}
		for _, one := range list {
			if mine := one.ID == id(c); one.Current != mine || one.Connected != mine || (one.Name == "my phone") != mine || one.Until <= one.LastSeen {
				t.Errorf("got %+v, want only %s to be current", one, id(c))
			}
		}
		if _, err := d.Rename(t.Context(), "nothing", "x"); !errors.Is(err, ErrUnknown) {
			t.Errorf("got %v, want ErrUnknown", err)
		}
		if _, err := d.Rename(t.Context(), id(c), ""); !errors.Is(err, ErrName) {
			t.Errorf("got %v, want ErrName", err)
		}
		leave()
		fixture.NoError(t, d.Save(t.Context()))

		d = open() // after a restart
		list, err = d.List(t.Context())
		if err != nil || len(list) != 2 || !knows(t, d, c) {
			t.Errorf("after a restart: got %+v, %v, want the same devices", list, err)
		}
		for _, one := range list {
			if one.ID == id(c) && (one.Name != "my phone" || one.Address != "192.0.2.8") {
				t.Errorf("after a restart: got %+v, want its name and where it was seen last", one)
			}
		}
		in, leave, _ = d.Enter(request(c), "192.0.2.8")
		if _, err := d.Revoke(t.Context(), id(c)); err != nil {
			t.Error(err)
		}
		<-in.Context().Done() // its requests end
		leave()
		if _, err := d.Revoke(t.Context(), id(c)); !errors.Is(err, ErrUnknown) || knows(t, d, c) || !knows(t, d, other) {
			t.Errorf("got %v, want that one device is out", err)
		}
		fixture.NoError(t, d.Save(t.Context()))
		if knows(t, open(), c) {
			t.Error("a revoked device is in after a restart")
		}
	})
}

// What one server of a group does holds on each of them: a link, a log-in, a name, and a log-in that was revoked, whose
// requests end.
func TestServersOfAGroup(t *testing.T) {
	open := inDatabase(t)
	a, b := open(), open()
	ctx := t.Context()
	if knows(t, b) { // it has read that there are none
		t.Error("a stranger is in")
	}
	c := logIn(t, b, link(t, a))
	kept := logIn(t, a, link(t, a))
	for _, d := range []*Devices{a, b} {
		if !knows(t, d, c) || !knows(t, d, kept) {
			t.Fatal("a log-in does not hold on all servers at once")
		}
	}
	in, leave, ok := a.Enter(request(c), "192.0.2.7")
	stays, leaveKept, too := a.Enter(request(kept), "192.0.2.7")
	if !ok || !too {
		t.Fatal("a device is not let in")
	}
	if _, err := b.Rename(ctx, id(kept), "kept"); err != nil {
		t.Error(err)
	}
	if _, err := b.Revoke(ctx, id(c)); err != nil {
		t.Error(err)
	}
	if _, err := a.Rename(ctx, id(c), "again"); !errors.Is(err, ErrUnknown) {
		t.Errorf("a name for what another server revoked: got %v, want ErrUnknown", err)
	}
	<-in.Context().Done()
	leave()
	// So does a stream, without anything that the server is asked.
	d := logIn(t, a, link(t, b))
	stream, leave, _ := a.Enter(request(d), "192.0.2.7")
	if _, err := b.Revoke(ctx, id(d)); err != nil {
		t.Error(err)
	}
	<-stream.Context().Done()
	leave()
	if knows(t, a, d) || stays.Context().Err() != nil {
		t.Error("the wrong device is out")
	}
	leaveKept()
	// A browser that follows the link of another account is logged in for that one on each of them.
	of := fixture.Must[string](t)(a.LinkFor(ctx, "k-ann"))
	_, key, _ := strings.Cut(of, "key=")
	before := map[string]context.Context{} // streams of the account before
	for name, d := range map[string]*Devices{"a": a, "b": b} {
		stream, leave, _ := d.Enter(request(kept), "192.0.2.7")
		defer leave()
		before[name] = stream.Context()
	}
	if _, other, err := a.LogIn(request(kept), key, "192.0.2.7"); err != nil || !other {
		t.Errorf("a browser of another account: got %v, %v; want true", other, err)
	}
	fixture.Must[[]api.Device](t)(b.List(ctx)) // it reads the devices
	for name, stream := range before {
		select {
		case <-stream.Done():
		case <-time.After(5 * time.Second):
			t.Errorf("the server %s: a stream of the account before goes on", name)
		}
	}
	if now, leave, ok := a.Enter(request(kept), "192.0.2.7"); !ok || now.Context().Err() != nil {
		t.Error("a request after the log-in is refused, or ends")
	} else {
		leave()
	}
	for name, d := range map[string]*Devices{"a": a, "b": b} {
		if token, in, err := d.Knows(request(kept)); token != "k-ann" || !in || err != nil {
			t.Errorf("the server %s: got the token %q, %v, %v, want k-ann", name, token, in, err)
		}
	}
	fixture.NoError(t, a.Save(ctx))
	fixture.NoError(t, b.Save(ctx))
	list, err := open().List(ctx)
	if err != nil || len(list) != 1 || list[0].Name != "kept" {
		t.Errorf("got %+v, %v, want the one that was kept", list, err)
	}
	if knows(t, InDatabase(a.place.(*tables).db, "another token", time.Now), kept) {
		t.Error("a log-in holds for another token")
	}
}

// A server that ends while a stream is still open ends what watches over it.
func TestSaveEndsTheWatch(t *testing.T) {
	d := inDatabase(t)()
	_, leave, ok := d.Enter(request(logIn(t, d, link(t, d))), "192.0.2.7")
	fixture.NoError(t, d.Save(context.Background()))
	leave()
	if !ok {
		t.Error("the device is not let in")
	}
}
