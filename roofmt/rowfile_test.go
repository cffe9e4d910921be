package roofmt_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/roofmt"
)

// database makes a SQLite file and leaves it open, with what was done last in its log only.
func database(t *testing.T, file string, statements ...string) *sql.DB {
	t.Helper()
	mkdirs(t, filepath.Dir(file))
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(file)+"?_pragma=journal_mode(WAL)&_pragma=wal_autocheckpoint(0)")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: got %v, want no error", s, err)
		}
	}
	return db
}

// sessionTable has the columns that rows come from, among others.
const sessionTable = `CREATE TABLE sessions(session_id TEXT PRIMARY KEY, source TEXT, pid INTEGER, started_at TEXT, ended_at TEXT, status TEXT, status_lock INTEGER DEFAULT 0, provider TEXT, model TEXT,
	cwd TEXT, workspace_root TEXT, parent_session_id TEXT, agent_id TEXT, is_subagent INTEGER, prompt TEXT, metadata_json TEXT, messages_path TEXT, updated_at TEXT)`

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func insertSession(id, status, prompt, meta, rest string) string {
	return "INSERT INTO sessions(session_id, status, prompt, metadata_json, started_at, cwd, provider, model, updated_at" + strings.Split(rest, "=")[0] + ") VALUES(" +
		quoted(id) + "," + quoted(status) + "," + quoted(prompt) + "," + quoted(meta) + ",'2026-04-14T20:53:20.000Z','/w','p','m','2026-04-14T20:53:21.000Z'" + strings.Join(strings.Split(rest, "=")[1:], "=") + ")"
}

func TestRowsOfClinesDatabase(t *testing.T) {
	data := t.TempDir()
	sessions := filepath.Join(data, "sessions")
	mkdirs(t, sessions)
	db := database(t, filepath.Join(data, "db", "sessions.db"), sessionTable,
		insertSession("s1", "completed", "mow the lawn\nand rake", `{"title":"mow the lawn","totalCost":0.25,"tokensIn":7,"tokensOut":3,"cacheReads":2,"cacheWrites":1,"isFavorited":true}`, ""),
		insertSession("s2", "running", "dig", `{"title":"A name of mine","usage":{"inputTokens":5,"outputTokens":6,"totalCost":1.5}}`, ""),
		insertSession("s1__bob", "failed", "help", "no JSON", ", parent_session_id=, 's1'"),
		insertSession("s1__teamtask__ann__x1", "cancelled", "help", "{}", `, parent_session_id, messages_path=, 's1', 'C:\data\sessions\s1\ann__t7.messages.json'`),
		insertSession("", "x", "", "", ""),
	)
	want := map[string]string{
		"s1":          `{"id":"s1","ts":1776200001000,"task":"mow the lawn\nand rake","tokensIn":7,"tokensOut":3,"cacheReads":2,"cacheWrites":1,"totalCost":0.25,"workspace":"/w","status":"completed","provider":"p","modelId":"m","isFavorited":true}`,
		"s2":          `{"id":"s2","ts":1776200001000,"task":"A name of mine","tokensIn":5,"tokensOut":6,"cacheReads":0,"cacheWrites":0,"totalCost":1.5,"workspace":"/w","status":"running","provider":"p","modelId":"m"}`,
		"s1__bob":     `{"id":"s1__bob","ts":1776200001000,"task":"help","tokensIn":0,"tokensOut":0,"cacheReads":0,"cacheWrites":0,"workspace":"/w","status":"failed","provider":"p","modelId":"m","parentTaskId":"s1","rootTaskId":"s1"}`,
		"s1__ann__t7": `{"id":"s1__ann__t7","ts":1776200001000,"task":"help","tokensIn":0,"tokensOut":0,"cacheReads":0,"cacheWrites":0,"workspace":"/w","status":"cancelled","provider":"p","modelId":"m","parentTaskId":"s1","rootTaskId":"s1"}`,
	}
	rows, err := roofmt.ReadRows(sessions)
	if err != nil || rows.Len() != len(want)+1 {
		t.Fatalf("%d rows (%v)", rows.Len(), err)
	}
	for id, row := range want {
		if got := string(rows.Row(id)); got != row {
			t.Errorf("%s\nwant %s", got, row)
		}
	}
	if rows.Prints != roofmt.RowPrints(sessions) {
		t.Error("what stood still has another print")
	}
	// A change shows before it is anywhere but in the log, and also while somebody holds the whole file.
	if _, err := db.Exec("UPDATE sessions SET status='completed' WHERE session_id='s2'; BEGIN EXCLUSIVE; DELETE FROM sessions"); err != nil {
		t.Fatal(err)
	}
	if rows.Prints == roofmt.RowPrints(sessions) {
		t.Error("a change does not show")
	}
	if rows, err = roofmt.ReadRows(sessions); err != nil || !strings.Contains(string(rows.Row("s2")), `"status":"completed"`) {
		t.Errorf("got %s (%v), want no error and strings.Contains(string(rows.Row(\"s2\")), `\"status\":\"completed\"`)",
			rows.Row("s2"), err)
	}
	if _, err := db.Exec("ROLLBACK"); err != nil {
		t.Fatal(err)
	}
}

// Whatever stands in the database's place, other indexes count on, and what is wrong is said.
func TestRowsWithoutClinesDatabase(t *testing.T) {
	index := `{"version":1,"sessions":{"s1":{"sessionId":"s1","startedAt":"2026-04-14T20:53:20.000Z","status":"completed","workspaceRoot":"/w","parentSessionId":"s0","metadata":{"title":"mow"}},"s2":7}}`
	for name, c := range map[string]struct {
		db     string // content; "" = absent
		index  string
		rows   int
		broken bool
	}{
		"neither":          {},
		"an index file":    {index: index, rows: 1},
		"no database":      {db: "this is none", index: index, rows: 1, broken: true},
		"cut":              {db: "SQLite format 3\x00", index: index, rows: 1, broken: true},
		"a broken index":   {index: index[:80], broken: true},
		"an odd index":     {index: `{"sessions":[1]}`, broken: true},
		"an index of none": {index: `{"version":1,"sessions":{}}`},
	} {
		t.Run(name, func(t *testing.T) {
			data := t.TempDir()
			mkdirs(t, filepath.Join(data, "sessions"), filepath.Join(data, "db"))
			for file, text := range map[string]string{"db/sessions.db": c.db, "sessions/sessions.index.json": c.index} {
				if text != "" {
					write(t, data, map[string]string{filepath.FromSlash(file): text})
				}
			}
			rows, err := roofmt.ReadRows(filepath.Join(data, "sessions"))
			if rows.Len() != c.rows || (err != nil) != c.broken || err != nil && !errors.Is(err, roofmt.ErrIndex) {
				t.Errorf("%d rows (%v)", rows.Len(), err)
			}
			if row := rows.Row("s1"); c.rows > 0 && string(row) != `{"id":"s1","ts":1776200000000,"task":"mow","tokensIn":0,"tokensOut":0,"cacheReads":0,"cacheWrites":0,"workspace":"/w","status":"completed","parentTaskId":"s0","rootTaskId":"s0"}` {
				t.Errorf("%s", row)
			}
		})
	}
}

// A table of another version has other columns, or is another one.
func TestOtherTables(t *testing.T) {
	for statement, broken := range map[string]bool{
		"CREATE TABLE sessions(session_id TEXT, prompt TEXT); INSERT INTO sessions VALUES('s1', 'mow')": false,
		"CREATE TABLE sessions(prompt TEXT); INSERT INTO sessions VALUES('mow')":                        false,
		"CREATE TABLE something(a)": true,
	} {
		data := t.TempDir()
		database(t, filepath.Join(data, "elsewhere", "sessions.db"), statement)
		t.Setenv("CLINE_DB_DATA_DIR", filepath.Join(data, "elsewhere"))
		rows, err := roofmt.ReadRows(filepath.Join(data, "sessions"))
		if (err != nil) != broken {
			t.Errorf("%s: got %v, want (err != nil) = broken", statement, err)
		}
		if strings.Contains(statement, "session_id") != strings.Contains(string(rows.Row("s1")), `"task":"mow"`) {
			t.Errorf("%s: got %s, want strings.Contains(statement, \"session_id\") = strings.Contains(string(rows.Row(\"s1\")), `\"task\":\"mow\"`)",
				statement, rows.Row("s1"))
		}
	}
}

// editorStorage is a storage of an extension, with the editor's database beside it.
func editorStorage(t *testing.T, extension, key, value string) (storage string) {
	t.Helper()
	global := filepath.Join(t.TempDir(), "Code", "User", "globalStorage")
	storage = filepath.Join(global, extension)
	mkdirs(t, filepath.Join(storage, "tasks"), filepath.Join(storage, "state"))
	database(t, filepath.Join(global, "state.vscdb"), "CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)",
		"INSERT INTO ItemTable VALUES('another', '{}')", "INSERT INTO ItemTable VALUES("+quoted(key)+","+quoted(value)+")")
	return storage
}

func TestRowsOfTheEditorsDatabase(t *testing.T) {
	history := `{"lastShown":"3.1","taskHistory":[{"id":"a","ts":5,"task":"mow","workspace":"/garden"},{"id":"b","task":"dig","isFavorited":true}]}`
	asText, err := json.Marshal(map[string]string{"taskHistory": `[{"id":"a","task":"mow"}]`})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		extension, key, value string
		files                 map[string]string
		want                  map[string]string
		broken                bool
	}{
		"Roo":                 {"rooveterinaryinc.roo-cline", "RooVeterinaryInc.roo-cline", history, nil, map[string]string{"a": "mow", "b": "dig"}, false},
		"Cline":               {"saoudrizwan.claude-dev", "saoudrizwan.claude-dev", history, nil, map[string]string{"a": "mow", "b": "dig"}, false},
		"another extension":   {"saoudrizwan.claude-dev", "RooVeterinaryInc.roo-cline", history, nil, map[string]string{"a": ""}, false},
		"a list as text":      {"kilocode.kilo-code", "kilocode.Kilo-Code", string(asText), nil, map[string]string{"a": "mow"}, false},
		"no task yet":         {"saoudrizwan.claude-dev", "saoudrizwan.claude-dev", `{"a":1}`, nil, map[string]string{"a": ""}, false},
		"no JSON":             {"saoudrizwan.claude-dev", "saoudrizwan.claude-dev", `{"taskHistory`, nil, map[string]string{"a": ""}, true},
		"an index file":       {"rooveterinaryinc.roo-cline", "RooVeterinaryInc.roo-cline", history, map[string]string{"tasks/_index.json": `{"version":1,"entries":[{"id":"a","task":"newer"}]}`}, map[string]string{"a": "newer", "b": ""}, false},
		"Cline's list":        {"saoudrizwan.claude-dev", "saoudrizwan.claude-dev", history, map[string]string{"state/taskHistory.json": `[{"id":"a","task":"newer"}]`}, map[string]string{"a": "newer", "b": ""}, false},
		"an empty index":      {"rooveterinaryinc.roo-cline", "RooVeterinaryInc.roo-cline", history, map[string]string{"tasks/_index.json": `{"version":1,"updatedAt":1776200000000,"entries":[]}`}, map[string]string{"a": "mow"}, false},
		"a broken index file": {"rooveterinaryinc.roo-cline", "RooVeterinaryInc.roo-cline", history, map[string]string{"tasks/_index.json": "\x00\x00"}, map[string]string{"a": "mow"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			storage := editorStorage(t, c.extension, c.key, c.value)
			for file, text := range c.files {
				write(t, storage, map[string]string{filepath.FromSlash(file): text})
			}
			tasks := filepath.Join(storage, "tasks")
			rows, err := roofmt.ReadRows(tasks)
			if (err != nil) != c.broken || err != nil && !errors.Is(err, roofmt.ErrIndex) {
				t.Errorf("got %v, want (err != nil) = c.broken and (no error or errors.Is(err, roofmt.ErrIndex))", err)
			}
			for id, want := range c.want {
				got := ""
				if row := rows.Row(id); row != nil {
					got, _ = esjson.GetString(row, "task")
				}
				if got != want {
					t.Errorf("%s: %q, want %q", id, got, want)
				}
			}
			if !c.broken && rows.Prints != roofmt.RowPrints(tasks) {
				t.Error("what stood still has another print")
			}
			database(t, filepath.Join(filepath.Dir(storage), "state.vscdb"), "CREATE TABLE more (text)", "INSERT INTO more VALUES(hex(zeroblob(9000)))")
			if changed := rows.Prints != roofmt.RowPrints(tasks); c.want["a"] == "mow" && !changed {
				t.Error("the database changed, and its print did not")
			}
		})
	}
}

func TestRowsOfTheCommandLine(t *testing.T) {
	storage := filepath.Join(t.TempDir(), ".vscode-mock", "global-storage")
	mkdirs(t, filepath.Join(storage, "tasks"))
	write(t, storage, map[string]string{"global-state.json": "{\n  \"taskHistory\": [\n    {\"id\": \"a\", \"task\": \"mow\"}\n  ]\n}\n"})
	if rows, err := roofmt.ReadRows(filepath.Join(storage, "tasks")); err != nil || rows.Row("a") == nil {
		t.Errorf("got %s (%v), want no error and rows.Row(\"a\") != nil", rows.Row("a"), err)
	}
	if err := os.Chmod(filepath.Join(storage, "global-state.json"), 0); err != nil || os.Geteuid() == 0 {
		return // who may read everything learns nothing here
	}
	if _, err := roofmt.ReadRows(filepath.Join(storage, "tasks")); err == nil {
		t.Error("what may not be read says nothing")
	}
}

func TestMergeRow(t *testing.T) {
	for name, c := range map[string]struct{ own, index, want string }{
		"nothing":                   {"", "", ""},
		"only the index":            {"", `{"id":"a"}`, `{"id":"a"}`},
		"only its own":              {`{"id":"a"}`, "", `{"id":"a"}`},
		"what it lacks":             {`{"id":"a"}`, `{"id":"b","workspace":"/w"}`, `{"id":"a","workspace":"/w"}`},
		"what became of it":         {`{"status":"running","ts":5}`, `{"status":"failed","ts":9}`, `{"status":"failed","ts":5}`},
		"what was never counted":    {`{"tokensIn":0,"totalCost":2}`, `{"tokensIn":7,"totalCost":3}`, `{"tokensIn":7,"totalCost":2}`},
		"a name of the person's":    {`{"task":"mow the lawn"}`, `{"task":"Garden"}`, `{"task":"Garden"}`},
		"a title that is its start": {`{"task":"mow the\nlawn"}`, `{"task":"mow the"}`, `{"task":"mow the\nlawn"}`},
	} {
		if got := string(roofmt.MergeRow([]byte(c.own), []byte(c.index))); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
