package server

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// rules are what servers of this kind broke elsewhere, by number, and the tests that hold
// ours to each, wherever they stand.
var rules = map[string]string{
	"B-01 start and restart are one path, from any tool's files": "TestRestartGuide TestCorpusAcceptance",
	"B-02 task and run are named in answers and events":          "TestRuleB02TheTaskIsNamed TestRuleB02TaskAndRunAreNamed TestRuleB02EventsAreWhole",
	"B-03 the outcome is decided once and on disk before told":   "TestRuleB03TheOutcomeIsDecidedOnce TestADisconnectEndsNothing",
	"B-04 nothing is approved by itself":                         "TestRuleB04NothingIsApprovedByItself TestRuleB04TheUsualPolicyAsks",
	"B-05 bodies are read strictly":                              "TestRuleB05StrictDecoding TestRuleB05BodiesAreReadStrictly TestBodiesAreReadStrictly",
	"B-06 status first, then a stream of what exists":            "TestRuleB06StatusBeforeStream TestRuleB06NoStreamOfWhatIsNot TestOlderCallRefusesBeforeAnythingIsDone",
	"B-07 reads never create, ids are no paths":                  "TestRuleB07ReadsNeverCreateAndIDsAreNoPaths TestRuleB07NoRootIsMade TestRuleB07IDsOfChangesAreNoPaths",
	"B-08 one model of deadlines":                                "TestOlderCallsSlidingTimeout TestWaitingForAPersonStopsTheClock TestRuleB08LimitsAreTold TestIdleLimit",
	"B-09 an event carries one message":                          "TestRuleB09OneMessageAnEvent",
	"B-10 questions are typed events":                            "TestOlderCallAsksAndCompletes TestChangesAnswerAsDescribed TestRuleB10AQuestionIsAnEvent",
	"B-11 silence is no consent":                                 "TestRuleB11SilenceIsNoConsent TestWhatIsNoAnswer",
	"B-12 an answer is one of the question's":                    "TestRuleB12AnswersAreOfTheQuestion TestOlderAnswersSelect",
	"B-13 only a question stops the clock":                       "TestWaitingForAPersonStopsTheClock TestOlderCallsSlidingTimeout TestIdleLimit",
	"B-14 a server drains and ends everything":                   "TestRuleB14Drain TestRuleB14StoppingEndsStreams TestADrainLosesNothing",
	"B-15 a tool's error ends nothing":                           "TestRuleB15AToolsErrorEndsNothing",
	"B-16 no secrets in logs and answers":                        "TestRuleB16NoSecretsInLogs TestServerTellsNoSecrets",
	"B-17 links do not name a host":                              "TestRuleB17LinksAreRelative",
	"B-18 a line is a prompt, never a shell's":                   "TestOnlyASlashMakesACommand",
	"B-19 unknown settings are named":                            "TestUnknownKeysAreNamedWithTheirLine",
	"B-20 flags are typed":                                       "TestEveryFlagSaysHowItIsCompleted TestExitOfErrors",
	"B-21 deltas are appended":                                   "TestRuleB21DeltasAppend TestDeltasAreLive",
	"B-22 what is guessed is named":                              "TestRuleB22GuessesAreNamed TestRuleB22GuessesOfOthersAreNamed",
	"B-23 no web page drives the agent":                          "TestRuleB23OnlyWhoMay TestPagesOfNamedOrigins",
	"B-24 files are appended to, or replaced whole, under locks": "TestWhatAKeysFileHolds TestKilledServerLosesAndDoublesNothing",
	"B-25 streams are bounded, resumable, and slow nobody":       "TestRuleB25StreamsAreBounded TestRuleB25EveryCursorGivesTheRest TestRuleB25StuckFollowerIsCutOff TestRuleB25AllTasksEveryCursorGivesTheRest",
	"B-26 files are private":                                     "TestRuleB26TheTokenIsPrivate TestAFolderThatIsNotOursAloneHasNoSocket TestRuleB26WhatIsKeptIsPrivate",
	"B-27 one engine, thin doors":                                "TestRepository TestServerAndHereAreTheSame",

	"1 routes are those described":             "TestEveryRouteIsDescribed TestEveryRouteAnswersAsItIsDescribed TestBodiesAreThoseThatAreDescribed",
	"2 kill -9 loses nothing":                  "TestKilledServerLosesAndDoublesNothing TestATreeKilledAtAnyMoment TestKilledDuring TestEveryAcknowledgedPostOutlivesAKill",
	"3 folders of other tools are resumed":     "TestCorpusAcceptance TestATaskOfAnotherTool",
	"4 a stream cut at every byte":             "TestCutAtEveryByte",
	"5 a follower that never reads":            "TestRuleB25StuckFollowerIsCutOff TestSlowFollowersMissDeltasFirst",
	"6 a disconnect ends nothing":              "TestADisconnectEndsNothing TestOlderCallersEndTouchesNoRun",
	"7 a cancel is over within two seconds":    "TestCancellingIsQuick TestCancellingACallOfAServerIsQuick TestATaskIsCancelledWhateverItDoes",
	"8 the first answer wins":                  "TestTheFirstAnswerWins",
	"9 a question outlives restarts":           "TestAQuestionOutlivesKills TestAQuestionIsAnsweredFromAnotherNetworkNamespace TestAQuestionOfAServerIsAnsweredFromAnotherNetworkNamespace",
	"10 a key is one effect":                   "TestOneKeyIsOneEffect TestEditsWithAKeyAreDoneOnce",
	"11 two patches with one ETag":             "TestTwoPatchesWithOneETag",
	"12 attacks do nothing":                    "TestRuleB23OnlyWhoMay TestLargeAndSlowBodies TestSlowHeaders TestLargeRequests TestLinkedTasksAreNotWritten TestTheUsualBounds",
	"14 rewinds, undo and forks to the byte":   "TestRewindUndoAndRedoOverHTTP TestRewindWithFilesOverHTTP TestForksOverHTTP",
	"15 a live editor beside":                  "TestBesideALiveWindow",
	"16 exit codes":                            "TestScripts TestExitOfErrors TestExitOfOutcomes TestExitCodesAreDocumented",
	"18 an upgrade loses nothing":              "TestUpgradeLosesNothing TestADrainInAHurryInterruptsNobodyWhoWaits",
	"19 no planted secret is told":             "TestServerTellsNoSecrets",
	"20 waiting stops the clock, hanging not":  "TestOlderCallsSlidingTimeout TestIdleLimit TestWaitingForAPersonStopsTheClock",
	"chaos: 50 clients and a server killed on": "TestChaos TestChaosOfAllTasks",
}

// A rule whose test went is a rule that nobody keeps.
func TestEachRuleHasItsTests(t *testing.T) {
	there := map[string]bool{}
	name := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range name.FindAllSubmatch(text, -1) {
			there[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for rule, tests := range rules {
		for _, test := range strings.Fields(tests) {
			if !there[test] {
				t.Errorf("%s: there is no %s", rule, test)
			}
		}
	}
}
