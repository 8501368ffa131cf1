package intake

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/failure"
)

// hashOf covers each text with its length before it, so that no two lists can be
// confused.
func hashOf(texts ...string) dmarcd.Hash {
	var b []byte
	for _, text := range texts {
		b = binary.AppendUvarint(b, uint64(len(text)))
		b = append(b, text...)
	}
	return sha256.Sum256(b)
}

// keyOf hashes what tells which report of which reporter one is.
func keyOf(kind dmarcd.ReportKind, organization, reportID, domain string, begin, end int64) dmarcd.Hash {
	return hashOf(string(kind), organization, reportID, domain, strconv.FormatInt(begin, 10), strconv.FormatInt(end, 10))
}

// failureSameness hashes all that a failure report says, whatever of it the operator
// keeps: reports about mails to two people differ in nothing but the local part. The
// body of the mail that failed is left out, because it is cut off at some length.
func failureSameness(m failure.Message) dmarcd.Hash {
	r, err := failure.Parse(m, failure.Options{KeepLocalParts: true})
	if err != nil {
		return dmarcd.Hash{} // it is refused anyway
	}
	texts := []string{
		string(dmarcd.KindFailure), r.FeedbackType, r.UserAgent, r.Version, string(r.AuthFailure),
		r.SourceText, r.ReportedDomain, r.ReportingMTA, string(r.DeliveryResult), r.DeliveryText,
		r.DKIMDomain, r.DKIMIdentity, r.DKIMSelector, r.DKIMSelectorDNS,
		r.OriginalEnvelopeID, r.OriginalMailFrom, r.MessageID, r.From,
		r.SourceIP.String(), strconv.Itoa(int(r.SourcePort)), strconv.Itoa(r.Incidents),
		strconv.FormatBool(r.AlignmentTold),
		strconv.FormatInt(r.ArrivalDate.Unix(), 10), strconv.FormatInt(r.Date.Unix(), 10),
		// A mailbox in a file has other ends of lines than a mail on its way.
		strings.TrimSpace(strings.ReplaceAll(r.Header, "\r\n", "\n")),
	}
	for _, list := range [][]string{r.AuthenticationResults, r.Misaligned, r.SPFDNS, r.OriginalRcptTo} {
		texts = append(texts, strconv.Itoa(len(list)))
		texts = append(texts, list...)
	}
	return hashOf(texts...)
}
