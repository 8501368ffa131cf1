package intake

import (
	"crypto/sha256"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/failure"
	"github.com/dmarcd/dmarcd/internal/reporttext"
)

// hashOf hashes texts with their lengths, so that no two lists collide.
func hashOf(texts ...string) dmarcd.Hash {
	return sha256.Sum256(reporttext.AppendTexts(nil, texts...))
}

// keyOf identifies a report of a reporter.
func keyOf(kind dmarcd.ReportKind, organization, reportID, domain string, begin, end int64) dmarcd.Hash {
	return hashOf(string(kind), organization, reportID, domain, strconv.FormatInt(begin, 10), strconv.FormatInt(end, 10))
}

// failureSameness hashes a failure report before redaction: reports about mail to two users
// may differ only in the local part. The body of the failed mail is excluded, because it may
// be truncated.
func failureSameness(m failure.Message) dmarcd.Hash {
	r, err := failure.Parse(m, failure.Options{KeepLocalParts: true})
	if err != nil {
		return dmarcd.Hash{} // it is rejected anyway
	}
	texts := []string{
		string(dmarcd.KindFailure), r.FeedbackType, r.UserAgent, r.Version, string(r.AuthFailure),
		r.SourceText, r.ReportedDomain, r.ReportingMTA, string(r.DeliveryResult), r.DeliveryText,
		r.DKIMDomain, r.DKIMIdentity, r.DKIMSelector, r.DKIMSelectorDNS,
		r.OriginalEnvelopeID, r.OriginalMailFrom, r.MessageID, r.From,
		r.SourceIP.String(), strconv.Itoa(int(r.SourcePort)), strconv.Itoa(r.Incidents),
		strconv.FormatBool(r.AlignmentReported),
		strconv.FormatInt(r.ArrivalDate.Unix(), 10), strconv.FormatInt(r.Date.Unix(), 10),
		// Line ends in an mbox differ from those of SMTP.
		strings.TrimSpace(strings.ReplaceAll(r.Header, "\r\n", "\n")),
	}
	for _, list := range [][]string{r.AuthenticationResults, r.Misaligned, r.SPFDNS, r.OriginalRcptTo} {
		texts = append(texts, strconv.Itoa(len(list)))
		texts = append(texts, list...)
	}
	return hashOf(texts...)
}
