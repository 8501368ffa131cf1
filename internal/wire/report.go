package wire

// Found says where a report was found.
type Found struct {
	File string `json:"file"`
	// Member is where in the file the report is, "" for the file itself.
	Member string `json:"member"`
	// Kind is "aggregate", "failure" or "tls".
	Kind string `json:"kind"`
	// Damage says what is wrong with a container that could be read in part, null
	// where nothing is.
	Damage *string `json:"damage"`
	// Quirks holds the deviations of the report from its specification.
	Quirks []Quirk `json:"quirks"`
}

// Quirk is one kind of deviation.
type Quirk struct {
	Quirk   string `json:"quirk"`
	Count   int    `json:"count"`
	Meaning string `json:"meaning"`
}

// AggregateReport is an aggregate report but for the list of its records, which
// follows as the member "record_list". What a report does not state is null.
type AggregateReport struct {
	Found
	XMLBytes     int64    `json:"xml_bytes"`
	XMLNamespace *string  `json:"xml_namespace"`
	Version      *string  `json:"version"`
	Flavour      string   `json:"schema_flavour"` // "draft", "7489" or "9990"
	OrgName      *string  `json:"org_name"`
	Email        *string  `json:"email"`
	ExtraContact *string  `json:"extra_contact_info"`
	ReportID     *string  `json:"report_id"`
	Begin        int64    `json:"begin"` // seconds since 1970
	End          int64    `json:"end"`
	SpanSeconds  int64    `json:"span_seconds"`
	Errors       []string `json:"errors"`
	Generator    *string  `json:"generator"`

	Domain          string  `json:"domain"`
	P               *string `json:"p"`
	SP              *string `json:"pp_sp"`
	NP              *string `json:"pp_np"`
	ADKIM           *string `json:"pp_adkim"`
	ASPF            *string `json:"pp_aspf"`
	Percent         *string `json:"pp_pct"`
	FailureOptions  *string `json:"pp_fo"`
	Testing         *string `json:"pp_testing"`
	DiscoveryMethod *string `json:"pp_discovery_method"`
	PSD             *string `json:"pp_psd"`

	Records   int   `json:"records"` // how many there are
	Messages  int64 `json:"sum_count"`
	Compliant int64 `json:"dmarc_compliant_count"`
	Sources   int   `json:"distinct_source_ips"`
}

// AggregateRecord is a record of an aggregate report. What it does not state is "".
type AggregateRecord struct {
	SourceIP     string            `json:"source_ip"`
	Count        int64             `json:"count"`
	Compliant    bool              `json:"compliant"`
	Disposition  string            `json:"disposition"`
	DKIM         string            `json:"dkim"`
	SPF          string            `json:"spf"`
	Reasons      []AggregateReason `json:"reasons"`
	HeaderFrom   string            `json:"header_from"`
	EnvelopeFrom string            `json:"envelope_from"`
	EnvelopeTo   string            `json:"envelope_to"`
	DKIMResults  []DKIMResult      `json:"dkim_results"`
	SPFResults   []SPFResult       `json:"spf_results"`
	// Disagrees is true where the results do not lead to what the receiver says.
	Disagrees bool `json:"disagrees"`
}

// AggregateReason is why a receiver did not do what the policy asks for.
type AggregateReason struct {
	Type    string `json:"type"`
	Comment string `json:"comment"`
}

// DKIMResult is the result of one signature.
type DKIMResult struct {
	Domain      string `json:"domain"`
	Selector    string `json:"selector"`
	Result      string `json:"result"`
	HumanResult string `json:"human_result"`
}

// SPFResult is the result of one SPF check.
type SPFResult struct {
	Domain      string `json:"domain"`
	Scope       string `json:"scope"`
	Result      string `json:"result"`
	HumanResult string `json:"human_result"`
}

// FailureReport is a failure report without local parts of addresses. What it does
// not state is null.
type FailureReport struct {
	Found
	TextOnly              bool     `json:"text_only"`
	FeedbackType          *string  `json:"feedback_type"`
	Version               *string  `json:"version"`
	UserAgent             *string  `json:"user_agent"`
	AuthFailure           *string  `json:"auth_failure"`
	AuthenticationResults *string  `json:"authentication_results"`
	IdentityAlignment     *string  `json:"identity_alignment"`
	DKIMAligned           *string  `json:"dkim_aligned"` // "yes" or "no"
	SPFAligned            *string  `json:"spf_aligned"`
	ReportedDomain        *string  `json:"reported_domain"`
	ReportingMTA          *string  `json:"reporting_mta"`
	SourceIP              *string  `json:"source_ip"`
	ArrivalDate           *string  `json:"arrival_date"`
	Date                  *string  `json:"date"` // of arrival, else of the report
	DeliveryResult        *string  `json:"delivery_result"`
	Incidents             int      `json:"incidents"`
	DKIMDomain            *string  `json:"dkim_domain"`
	DKIMIdentity          *string  `json:"dkim_identity"`
	DKIMSelector          *string  `json:"dkim_selector"`
	SPFDNS                []string `json:"spf_dns"`
	OriginalMailFrom      *string  `json:"original_mail_from"`
	OriginalRcptTo        []string `json:"original_rcpt_to"`
	MessageID             *string  `json:"message_id"`
	From                  *string  `json:"from"`
	// Header and Body are the mail that failed, where the operator keeps it.
	Header string `json:"header,omitempty"`
	Body   string `json:"body,omitempty"`
}

// TLSReport is a TLS report. What it does not state is null.
type TLSReport struct {
	Found
	OrganizationName *string     `json:"organization_name"`
	ContactInfo      *string     `json:"contact_info"`
	ReportID         *string     `json:"report_id"`
	Start            *string     `json:"start"`
	End              *string     `json:"end"`
	Successful       int64       `json:"total_success"`
	Failed           int64       `json:"total_failure"`
	FailureDetails   int         `json:"failure_details"` // how many there are
	Policies         []TLSPolicy `json:"policies"`
}

// TLSPolicy is a policy of a TLS report. What it does not state is "".
type TLSPolicy struct {
	Type        string       `json:"type"`
	Domain      string       `json:"domain"`
	Strings     []string     `json:"policy_strings"`
	MXHosts     []string     `json:"mx_hosts"`
	Successful  int64        `json:"success"`
	Failed      int64        `json:"failure"`
	Details     int          `json:"details"` // how many there are
	ResultTypes []string     `json:"result_types"`
	DetailList  []TLSFailure `json:"detail_list"`
}

// TLSFailure is a group of sessions that failed in the same way.
type TLSFailure struct {
	ResultType            string `json:"result_type"`
	FailedSessions        int64  `json:"failed_sessions"`
	SendingMTAIP          string `json:"sending_mta_ip"`
	ReceivingMXHostname   string `json:"receiving_mx_hostname"`
	ReceivingMXHelo       string `json:"receiving_mx_helo"`
	ReceivingIP           string `json:"receiving_ip"`
	AdditionalInformation string `json:"additional_information"`
	ReasonCode            string `json:"failure_reason_code"`
}
