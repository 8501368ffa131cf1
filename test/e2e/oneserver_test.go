package e2e_test

import "testing"

// TestOneServer runs tests one after the other on one server of every engine: to start a server
// costs more than most of them. Each begins without domains.
func TestOneServer(t *testing.T) {
	tests := []struct {
		name string
		test func(t *testing.T, s *server)
	}{
		{"seven endpoints", sevenEndpointsEndToEnd},
		{"verify does not read the body", verifyDoesNotReadTheBody},
		{"purpose is shown", purposeIsShown},
		{"documentation needs no token", documentationNeedsNoToken},
		{"documentation has no parameters", documentationHasNoParameters},
		{"health outside the prefix", healthOutsideThePrefix},
		{"paths are taken as they stand", pathsAreTakenAsTheyStand},
		{"bodies of a creation", bodiesOfACreation},
		{"media types of a creation", mediaTypesOfACreation},
		{"limit of a body", bodiesAreLimited},
		{"names are normalized", namesAreNormalized},
		{"names that are refused", namesThatAreRefused},
		{"names in paths are decoded once", namesInPathsAreDecodedOnce},
		{"conditional requests", conditionalRequests},
		{"HEAD is GET without a body", headIsGetWithoutABody},
		{"summaries", summariesOfDays},
		{"summaries with bad days", summariesWithBadDays},
		{"a deleted domain does not count", deletedDomainDoesNotCount},
		{"unknown clients are unauthorized", strangersAreUnauthorizedEverywhere},
		{"scheme word in any case", schemeWordInAnyCase},
		{"a team off the whitelist is forbidden", teamOffTheWhitelistIsForbiddenEverywhere},
		{"a read token may only read", readTokenMayOnlyRead},
		{"order of refusals", orderOfRefusals},
		{"wrong method", wrongMethodTellsTheRightOnes},
		{"bad queries of the additions", badQueriesOfTheAdditions},
		{"a cursor with more behind it", cursorWithMoreBehindIt},
		{"a misplaced token is not repeated", misplacedTokenIsNotRepeated},
		{"the list is ordered by name", listIsOrderedByName},
		{"the list is paged", listIsPaged},
		{"queries of the list", queriesOfTheList},
		{"a long list is compressed on request", longListIsCompressedOnRequest},
	}
	each(t, exampleZone, func(t *testing.T, in *installation) {
		s := in.serve()
		for _, row := range tests {
			t.Run(row.name, func(t *testing.T) {
				whole := in.t
				defer func() { in.t = whole }()
				in.t = t
				for _, name := range s.list() {
					s.remove(name)
				}
				row.test(t, s)
			})
		}
	})
}
