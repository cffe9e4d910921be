package redact

import (
	"encoding/base64"
	"strings"
	"testing"
)

// bot writes the number of a bot as its token does.
func bot(number string) string { return base64.RawStdEncoding.EncodeToString([]byte(number)) }

// logins are the secrets of people and services that no prefix of their own gives away.
func logins() map[string]string {
	return map[string]string{
		"basic":        "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("jane:hunter22-"+fake(alnum, 9))),
		"azure":        "AccountName=x;AccountKey=" + fake(alnum, 86) + "==;EndpointSuffix=core.windows.net",
		"azure bus":    "Endpoint=sb://x/;SharedAccessKey=" + fake(alnum, 43) + "=",
		"discord":      "client.login('" + bot("812345678901234567") + "." + fake(word, 6) + "." + fake(word, 38) + "')",
		"cookie":       "Cookie: theme=dark; sessionid=" + fake(alnum, 32) + "; lang=en",
		"set-cookie":   "set-cookie: connect.sid=s%3A" + fake(alnum, 32) + "; Path=/; HttpOnly",
		"json cookie":  `"Cookie": "auth_token=` + fake(alnum, 32) + `"`,
		"db password":  "DB_PASSWORD=" + fake(alnum, 12) + "\n",
		"quoted":       `export MYSQL_ROOT_PASSWORD="` + fake(alnum, 12) + `"`,
		"pg password":  "PGPASSWORD=" + fake(alnum, 12) + " psql",
		"npmrc":        "//registry.example.org/:_authToken=" + fake(hex, 8) + "-" + fake(hex, 24),
		"npmrc basic":  "//registry.example.org/:_auth=" + fake(alnum, 24),
		"netrc":        "machine api.example.org login me password " + fake(alnum, 12),
		"netrc lines":  "machine api.example.org\n  login me\n  password " + fake(alnum, 12) + "\n",
		"doppler":      "DOPPLER_TOKEN=dp.st.dev_personal." + fake(alnum, 43),
		"google":       `"private_key_id": "` + fake(hex, 40) + `"`,
		"twilio":       "TWILIO_API_KEY=SK" + fake(hex, 32),
		"telegram":     "https://api.telegram.org/bot123456789:AAH" + fake(word, 32) + "/getMe",
		"short key":    "-----BEGIN EC PRIVATE" + " KEY-----\n" + fake(alnum, 20) + "\n" + fake(alnum, 21) + "\n-----END EC PRIVATE" + " KEY-----",
		"yaml":         "  DB_PASSWORD: " + fake(alnum, 12) + "\n",
		"quoted yaml":  "POSTGRES_PASSWORD: '" + fake(alnum, 12) + "'\n",
		"json":         `{"DB_PASSWORD": "` + fake(alnum, 12) + `", "x": 1}`,
		"short json":   `{"DB_PASSWORD":"` + fake(alnum, 12) + `","x":1}`,
		"slash":        "postgres://app:" + fake(alnum, 12) + "/" + fake(alnum, 13) + "@db.internal:5432/x",
		"slashes":      "postgres://app:/" + fake(alnum, 12) + "//" + fake(alnum, 13) + "/@db/x?a=me@b",
		"at sign":      "redis://:" + fake(alnum, 12) + "@" + fake(alnum, 13) + "@cache/0",
		"at first":     "redis://:@" + fake(alnum, 12) + "@cache/0",
		"azure app":    "client_secret: abc8Q~" + fake(alnum, 34),
		"azure share":  "https://x.blob.core.windows.net/c?sv=2022-11-02&sp=r&sig=" + fake(alnum, 20) + "%2F" + fake(alnum, 22) + "%3D",
		"logic app":    "https://x.logic.azure.com/w?sig=" + fake(alnum, 43) + "&api-version=1",
		"postman":      "X-API-Key: PMAK-" + fake(hex, 24) + "-" + fake(hex, 34),
		"tavily":       "TAVILY_API_KEY=tvly-dev-" + fake(alnum, 32),
		"tavily, old":  "TAVILY_API_KEY=tvly-" + fake(alnum, 32),
		"langsmith":    "LANGCHAIN_API_KEY=lsv2_pt_" + fake(hex, 32) + "_" + fake(hex, 10),
		"two sessions": "cookie: a_session=" + fake(alnum, 20) + "; x=1; b_session=" + fake(alnum, 21) + "; y=2",
	}
}

func TestLoginsAreMasked(t *testing.T) {
	r := New()
	for name, text := range logins() {
		got, n := r.String("before " + text + " after")
		if n != 1 || !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " after") {
			t.Errorf("%s: %d in %q", name, n, got)
		}
		for size := 12; size < 45; size++ { // all secrets above are of fake's making
			if strings.Contains(got, fake(alnum, size)) || strings.Contains(got, fake(word, size)) || strings.Contains(got, fake(hex, size)) {
				t.Errorf("%s: its secret is left in %q", name, got)
			}
		}
	}
	for _, kept := range []string{"theme=dark; sessionid=", "; lang=en", "Path=/", "login me", "AccountName=x;AccountKey=", "_authToken="} {
		found := false
		for _, text := range logins() {
			got, _ := r.String(text)
			found = found || strings.Contains(got, kept)
		}
		if !found {
			t.Errorf("%q is gone with the secret beside it", kept)
		}
	}
}

// What only looks like one of them stays as it is.
func TestNearLogins(t *testing.T) {
	r := New()
	for _, text := range []string{
		"Basic authentication of users is described below", "basic trainingABC1", "Basic dXNlcjpwYXNzd29yZA==", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
		"Basic " + fake(alnum, 24), "basic 12345678", "Basic " + base64.StdEncoding.EncodeToString([]byte("no colon in it 123")),
		"AccountKey=<your-account-key>", "AccountKey=" + strings.Repeat("A", 86) + "==", "AccountKey=" + fake(alnum, 60),
		"SharedAccessKeyName=RootManageSharedAccessKey",
		"MTIzNDU2Nzg5MDEyMzQ1Njc4", "MTIzNDU2Nzg5MDEyMzQ1Njc4.short.x", "Nz.x.y", "OD" + fake(alnum, 24) + "." + fake(word, 6) + "." + fake(word, 38),
		bot("123456789012345678") + "-" + fake(word, 6) + "." + fake(word, 38), bot("123456789012345678") + "." + fake(word, 6) + "-" + fake(word, 38),
		bot("1234567890123456") + "." + fake(word, 6) + "." + fake(word, 38), bot("1234567890123456789012") + "." + fake(word, 6) + "." + fake(word, 38),
		"cookie: accept our cookies to go on", "Cookie: theme=dark; lang=en-GB; consent=" + fake(alnum, 32), "Cookie: sessionid=abc", "Set-Cookie: session=; Max-Age=0",
		"a cookie = session=" + fake(alnum, 32), "document.cookie: string; // the session",
		"DB_PASSWORD=", "DB_PASSWORD=changeme", "DB_PASSWORD=${DB_PASSWORD2}", "DB_PASSWORD=$SECRET1", "DB_PASSWORD=<password1>", "PASSWORD=os.getenv('X1')", "DB_PASSWORD=********", "DB_PASSWORD=password", "WITH PASSWORD = 'x1'", "PASSWORD=getPassword(1)", "DB_PASSWORD=postgres",
		"DB_PASSWORD: process.env.DB_PASSWORD2", "DB_PASSWORD: ${DB_PASSWORD2}", "DB_PASSWORD: changeme", "WRONG PASSWORD: user1234", "const PASSWORD: string1",
		`"DB_PASSWORD": "{{ db_password1 }}"`, "DB_PASSWORD: getPassword1()", "DB_PASSWORD: \n  valueFrom1: x", "DB_PASSWORD: str | None1",
		`RESET_PASSWORD: "/api/v1/reset"`, `FORGOT_PASSWORD: 'auth/v1/forgot-password'`, "OID.CHALLENGE_PASSWORD: 'challengePassword'", `"LOST_PASSWORD": "https://x/a1"`,
		"http://host:8080/v1/users@2", "http://HOST:PORT/v1/users@2", "http://localhost:3000/@fs/a1/b", "https://host/a:b/c1@d", "git+ssh://git@host:owner/repo1@v2",
		"https://u:letmein@host/path1@2", "http://h:port/a1,http://u:letmein@h", "https://u:pa/ss@h", "http://host:80/p?sig=a@b",
		"sig=" + fake(hex, 64), "sig=" + fake(alnum, 42), "design=" + fake(alnum, 43), "sig=" + strings.Repeat("A", 43), "FAQ~" + fake(alnum, 34), "0Q~" + fake(alnum, 30),
		"PMAK-" + fake(hex, 24), "tvly-YOUR_API_KEY", "lsv2_pt_xxxx",
		"//registry.npmjs.org/:_authToken=${NPM_TOKEN}", "_authToken=YOUR_TOKEN", "_authToken=" + fake(alnum, 15),
		"machine learning with login forms and password fields 123", "machine host login me password secret", "machine host login me account 12345678", "the machine host2 login name3 password",
		"dp.st.short", "dp.pt." + fake(alnum, 39), "private_key_id: the id of the key", `"private_key_id": "` + fake(hex, 39) + `"`,
		"SK" + fake(hex, 31), "SK" + fake(hex, 33), "TASK" + fake(hex, 32), "AC" + strings.Repeat("0", 32),
		"sha:AAH" + fake(word, 32), "12:AAH" + fake(word, 31), "12:AAH" + fake(word, 33),
	} {
		if got, n := r.String(text); n != 0 || got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}
