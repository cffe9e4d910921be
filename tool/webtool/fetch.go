package webtool

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace/terminal"
)

const (
	timeLimit    = 30 * time.Second
	dialLimit    = 10 * time.Second // for each of a name's addresses
	sizeLimit    = 5 << 20          // bytes read of a page
	maxRedirects = 10
)

// errTime is the cause of a fetch that took too long.
var errTime = fmt.Errorf("it did not end within %s", timeLimit)

// page is a site's answer.
type page struct {
	head   string // a description for the model
	text   string // "" when there is none
	failed bool
}

// fetch gets an address, and follows redirects within its site.
func (o Options) fetch(ctx context.Context, target *url.URL) (page, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeLimit, errTime)
	defer cancel()
	at := target
	for range maxRedirects {
		got, next, err := o.get(ctx, at)
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil || next == nil {
			return got, err
		}
		if next.Host != target.Host || at.Scheme == "https" && next.Scheme == "http" {
			return page{head: fmt.Sprintf("%s redirects to %s, which is another site. It was not followed; call %s for it.",
				at, next, Name)}, nil
		}
		at = next
	}
	return page{}, fmt.Errorf("it redirects more than %d times", maxRedirects)
}

// get sends one request. next is the target of a redirect, nil without one.
func (o Options) get(ctx context.Context, at *url.URL) (got page, next *url.URL, err error) {
	client, pinned, err := o.client(ctx, at)
	if err != nil {
		return got, nil, err
	}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, pinned.String(), nil)
	if err != nil {
		return got, nil, errors.New("it is no URL")
	}
	req.Host = at.Host
	req.Header.Set("User-Agent", "Roost/"+cmp.Or(o.Version, "unknown")+" (+https://github.com/roost-dev/roost)")
	req.Header.Set("Accept", "text/html, text/*, application/json, application/xml;q=0.9, */*;q=0.1")
	res, err := client.Do(req)
	if err != nil {
		if failed, is := errors.AsType[*url.Error](err); is {
			err = failed.Err // the error around it names the address once more
		}
		return got, nil, err
	}
	defer res.Body.Close()
	if to := res.Header.Get("Location"); to != "" && res.StatusCode >= 300 && res.StatusCode < 400 {
		relative, err := at.Parse(to)
		if err == nil {
			next, err = parse(relative.String())
		}
		if err != nil {
			return got, nil, fmt.Errorf("it redirects to %q, which cannot be fetched: %w", tool.OneLine(to), err)
		}
		return got, next, nil
	}
	got, err = read(at, res)
	return got, nil, err
}

// client returns a client for one request, which connects to a checked address only, and the URL for that request. The
// URL makes a proxy connect to the checked address, too: given the name, the proxy would resolve it a second time. That
// works with TLS, where the request inside names the host.
func (o Options) client(ctx context.Context, at *url.URL) (*http.Client, *url.URL, error) {
	found, err := o.resolve(ctx, at)
	if err != nil {
		return nil, nil, err
	}
	byProxy := o.Proxy
	if byProxy == nil {
		byProxy = func(u *url.URL) (*url.URL, error) { return http.ProxyFromEnvironment(&http.Request{URL: u}) }
	}
	proxy, err := byProxy(at)
	if err != nil {
		return nil, nil, fmt.Errorf("the proxy of the environment cannot be used: %w", err)
	}
	t := &http.Transport{
		DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10, TLSHandshakeTimeout: dialLimit,
		TLSClientConfig: &tls.Config{ServerName: at.Hostname(), MinVersion: tls.VersionTLS12},
	}
	pinned := *at
	if proxy != nil {
		if at.Scheme == "http" && strings.HasPrefix(proxy.Scheme, "http") {
			return nil, nil, fmt.Errorf("the proxy of the environment would resolve %s again, to an address that was not "+
				"checked; https:// goes through it", at.Hostname())
		}
		t.Proxy = http.ProxyURL(proxy)
		pinned.Host = net.JoinHostPort(found[0].String(), portOf(at))
	} else {
		t.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dial(ctx, network, found, portOf(at))
		}
	}
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		&pinned, nil
}

// dial connects to the first address that answers.
func dial(ctx context.Context, network string, found []netip.Addr, port string) (conn net.Conn, err error) {
	dialer := net.Dialer{Timeout: dialLimit}
	for _, ip := range found {
		if conn, err = dialer.DialContext(ctx, network, net.JoinHostPort(ip.String(), port)); err == nil || ctx.Err() != nil {
			break
		}
	}
	return conn, err //nolint:wrapcheck // it names the address
}

// read reads a response, if it is text.
func read(at *url.URL, res *http.Response) (page, error) {
	body := io.LimitReader(res.Body, sizeLimit+1)
	media, params, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	var begin []byte
	if err != nil { // none is given: the bytes show what it is
		begin = make([]byte, 512)
		n, _ := io.ReadFull(body, begin)
		begin = begin[:n]
		media, params, _ = mime.ParseMediaType(http.DetectContentType(begin))
	}
	got := page{failed: res.StatusCode < 200 || res.StatusCode > 299}
	got.head = fmt.Sprintf("Fetched %s: status %s, %s", at, tool.OneLine(res.Status), media)
	if !isText(media) {
		size := "of unknown size"
		if res.ContentLength >= 0 {
			size = fmt.Sprintf("of %d bytes", res.ContentLength)
		}
		got.failed = true
		got.head += " " + size + ". It is not text, so its content is not shown."
		return got, nil
	}
	rest, err := io.ReadAll(body)
	data := append(begin, rest...)
	if err != nil {
		return got, fmt.Errorf("its content broke off after %d bytes: %w", len(data), err)
	}
	size := fmt.Sprintf(", %d bytes", len(data))
	if len(data) > sizeLimit {
		data = terminal.WholeEnd(data[:sizeLimit])
		size = fmt.Sprintf(", cut after %d bytes, because it is longer", sizeLimit)
	}
	got.head += size
	text, lost := decode(data, params["charset"])
	if lost {
		got.head += "; letters in its encoding " + tool.OneLine(params["charset"]) + " may be missing"
	}
	if media == "text/html" || media == "application/xhtml+xml" {
		text = Markdown(text, at)
	}
	if got.text = strings.TrimSpace(terminal.Plain(text)); got.text == "" {
		got.head += ". It holds no text."
	}
	return got, nil
}

// isText reports whether a media type is one that a model reads.
func isText(media string) bool {
	if strings.HasPrefix(media, "text/") || strings.HasSuffix(media, "+json") || strings.HasSuffix(media, "+xml") {
		return true
	}
	switch strings.TrimPrefix(strings.TrimPrefix(media, "application/"), "x-") {
	case "json", "xml", "ndjson", "yaml", "toml", "javascript", "sh":
		return true
	}
	return false
}

// decode turns bytes into text. It reads bytes that are not UTF-8 as Latin-1, unless charset names another encoding;
// lost reports that letters of such an encoding could not be decoded.
func decode(data []byte, charset string) (text string, lost bool) {
	if utf8.Valid(data) {
		return string(data), false
	}
	charset = strings.ToLower(charset)
	if charset == "" || strings.Contains(charset, "8859-1") || strings.Contains(charset, "latin1") || strings.Contains(charset, "1252") {
		return string(api.Each(data, func(b byte) rune { return rune(b) })), false
	}
	return strings.ToValidUTF8(string(data), "\uFFFD"), true
}
