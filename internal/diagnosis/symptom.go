package diagnosis

import (
	"slices"
	"strings"
)

// Symptom is an error on the console of an instance that does not join. An error may have several causes.
type Symptom string

// The symptoms.
const (
	Unauthorized   Symptom = "the API server does not know the node's role"
	TimedOut       Symptom = "packets to the API server get no answer"
	NoSuchHost     Symptom = "a name is not resolved"
	Untrusted      Symptom = "the API server's certificate is not trusted"
	NoCredentials  Symptom = "the instance has no credentials"
	NotPermitted   Symptom = "the node's role may not call AWS"
	OtherName      Symptom = "the node's name differs from the name that its role is mapped to"
	ClockWrong     Symptom = "the instance's clock is wrong"
	UnknownPart    Symptom = "the image does not understand the user data"
	NodeadmFailed  Symptom = "nodeadm failed"
	NodeadmAbsent  Symptom = "the image has no nodeadm"
	ScriptAbsent   Symptom = "the image has no bootstrap.sh"
	ScriptFailed   Symptom = "a script of the user data failed"
	OtherArch      Symptom = "a program is for another architecture"
	KubeletFlag    Symptom = "the kubelet refuses a flag"
	KubeletConfig  Symptom = "the kubelet refuses its configuration"
	UnknownType    Symptom = "the image does not know the instance type"
	SwapOn         Symptom = "the instance has swap"
	BadSettings    Symptom = "Bottlerocket refuses the settings"
	NetworkPlugin  Symptom = "the network plug-in is not up"
	ServiceTimeout Symptom = "the address of the service kubernetes gets no answer"
	PullFailed     Symptom = "images cannot be pulled"
	KubeletAbsent  Symptom = "the image has no kubelet"
	DiskFull       Symptom = "the instance's disk is full"
	Proxied        Symptom = "a proxy refuses a request"
	NoMetadata     Symptom = "the instance's metadata service does not answer"
)

// logPattern matches log lines that contain all substrings. Such a line shows the symptom.
type logPattern struct {
	symptom    Symptom
	substrings []string // case-sensitive, in any order; "rror" matches "Error" and "error"
}

// logPatterns returns the patterns of the logs of kubelet, nodeadm, bootstrap.sh, cloud-init, Bottlerocket and the
// kernel. A line shows the symptom of the first pattern that matches the line, so specific patterns precede general
// ones.
func logPatterns() []logPattern {
	return []logPattern{
		{OtherName, []string{"is not allowed to modify node"}},
		{OtherName, []string{"can only access node lease with the same name"}},
		{ClockWrong, []string{"SignatureDoesNotMatch"}},
		{ClockWrong, []string{"Signature expired"}},
		{ClockWrong, []string{"Signature not yet current"}},
		{ClockWrong, []string{"RequestExpired"}},
		{ClockWrong, []string{"certificate has expired or is not yet valid"}},
		{Proxied, []string{"proxyconnect tcp"}},
		{Proxied, []string{"Failed to connect to proxy URL"}},
		{Proxied, []string{"Proxy Authentication Required"}},
		{Proxied, []string{"Unable to register node", `/nodes\": Forbidden`}},
		{Proxied, []string{"Unable to register node", `/nodes\": Bad Gateway`}},
		{Proxied, []string{"Unable to register node", `/nodes\": Service Unavailable`}},
		{Unauthorized, []string{"Unable to register node", "Unauthorized"}},
		{Unauthorized, []string{"CSINode", "Unauthorized"}},
		{Unauthorized, []string{"kubelet", "Unauthorized"}},
		{Unauthorized, []string{"must be logged in to the server"}},
		{Untrusted, []string{"x509: certificate signed by unknown authority"}},
		{Untrusted, []string{"unable to load client CA file"}},
		{NoSuchHost, []string{"no such host"}},
		{NoSuchHost, []string{"server misbehaving", "lookup"}},
		{NoSuchHost, []string{"Temporary failure in name resolution"}},
		{ServiceTimeout, []string{"ipamd", "timeout"}},
		// EKS gives the service kubernetes one of these addresses by default.
		{ServiceTimeout, []string{"10.100.0.1:443", "timeout"}},
		{ServiceTimeout, []string{"172.20.0.1:443", "timeout"}},
		{PullFailed, []string{"failed to pull", "timeout"}},
		{PullFailed, []string{"failed to pull", "pause"}},
		{TimedOut, []string{"i/o timeout"}},
		{TimedOut, []string{"TLS handshake timeout"}},
		{TimedOut, []string{"connect: connection timed out"}},
		{TimedOut, []string{"Client.Timeout exceeded while awaiting headers"}},
		{NoCredentials, []string{"Unable to locate credentials"}},
		{NoCredentials, []string{"no EC2 IMDS role found"}},
		{NoCredentials, []string{"NoCredentialProviders"}},
		{NotPermitted, []string{"UnauthorizedOperation"}},
		{NotPermitted, []string{"is not authorized to perform"}},
		{NotPermitted, []string{"AccessDenied"}},
		{NoCredentials, []string{"PrivateDnsName is not available"}},
		{NodeadmAbsent, []string{"nodeadm: command not found"}},
		{NodeadmAbsent, []string{"Unit nodeadm", "not found"}},
		{NodeadmAbsent, []string{"nodeadm: No such file or directory"}},
		{NodeadmAbsent, []string{"/usr/bin/nodeadm: Permission denied"}},
		{NoMetadata, []string{"IMDS's HTTP endpoint is probably disabled"}},
		{NoMetadata, []string{"IMDS request failed", "403"}},
		{NoMetadata, []string{"request to EC2 IMDS failed", "StatusCode: 403"}},
		{KubeletAbsent, []string{"/usr/bin/kubelet: no such file or directory"}},
		{KubeletAbsent, []string{"Failed to start kubelet.service: Unit", "not found"}},
		{KubeletAbsent, []string{"Failed to locate executable /usr/bin/kubelet"}},
		{DiskFull, []string{"o space left on device"}},
		{ScriptAbsent, []string{"bootstrap.sh has been removed from AL2023"}},
		{ScriptAbsent, []string{"/etc/eks/bootstrap.sh: No such file or directory"}},
		{ScriptAbsent, []string{"/etc/eks/bootstrap.sh: not found"}},
		{UnknownPart, []string{"Unhandled unknown content-type"}},
		{UnknownPart, []string{"Unhandled non-multipart"}},
		{UnknownPart, []string{"could not find NodeConfig within UserData"}},
		{OtherArch, []string{"xec format error"}},
		{OtherArch, []string{"cannot execute binary file"}},
		{UnknownType, []string{"in eni-max-pods"}},
		{UnknownType, []string{"No entry for", "eni-max-pods"}},
		{SwapOn, []string{"running with swap on is not supported"}},
		{BadSettings, []string{"Failed to", "settings", "unknown field"}},
		{BadSettings, []string{"unknown field", "expected one of"}},
		{BadSettings, []string{"Error deserializing", "settings"}},
		{BadSettings, []string{"early-boot-config", "rror"}},
		{KubeletFlag, []string{"failed to parse kubelet flag"}},
		{KubeletFlag, []string{"kubelet", "unknown flag"}},
		{KubeletFlag, []string{"labels specified with --node-labels"}},
		{KubeletFlag, []string{"invalid argument", "flag"}},
		{KubeletConfig, []string{"failed to load kubelet config"}},
		{KubeletConfig, []string{"failed to validate kubelet configuration"}},
		{KubeletConfig, []string{"strict decoding error", "kubelet"}},
		{NetworkPlugin, []string{"cni plugin not initialized"}},
		{NetworkPlugin, []string{"NetworkPluginNotReady"}},
		{NodeadmFailed, []string{"nodeadm", "Command failed"}},
		{NodeadmFailed, []string{"Failed to start nodeadm-"}},
		{ScriptFailed, []string{"unexpected EOF while looking for matching"}},
		{ScriptFailed, []string{"syntax error"}},
		{ScriptFailed, []string{"Failed to run module scripts-user"}},
		{ScriptFailed, []string{"Failed running /var/lib/cloud/instance/scripts"}},
	}
}

// LongestLine is the number of bytes after which ReadConsole cuts a line. Lines that show symptoms are shorter.
const LongestLine = 2000

// ReadConsole returns the symptoms in console output, each with the last line that shows it, in order of their first
// lines. Its time is linear in the length of the output.
func ReadConsole(console string) []ConsoleSymptom {
	var out []ConsoleSymptom
	all := logPatterns()
	for line := range strings.Lines(console) {
		line = strings.TrimSpace(line)
		line = line[:min(len(line), LongestLine)]
		symptom, ok := symptomOf(all, line)
		if !ok {
			continue
		}
		if i := slices.IndexFunc(out, func(s ConsoleSymptom) bool { return s.Symptom == symptom }); i >= 0 {
			out[i].Line, out[i].Count = line, out[i].Count+1
			continue
		}
		out = append(out, ConsoleSymptom{Symptom: symptom, Line: line, Count: 1})
	}
	return out
}

// ConsoleSymptom is a symptom on a console.
type ConsoleSymptom struct {
	Symptom Symptom
	Line    string // the last line that shows the symptom
	Count   int    // number of lines that show the symptom
}

// symptomOf returns the symptom of the first pattern that matches the line; ok is false if none matches.
func symptomOf(all []logPattern, line string) (s Symptom, ok bool) {
	for _, p := range all {
		lacks := func(sub string) bool { return !strings.Contains(line, sub) }
		if !slices.ContainsFunc(p.substrings, lacks) {
			return p.symptom, true
		}
	}
	return "", false
}

// Shorten shortens a log line to fit on a screen. It keeps the end of the line, where the error is.
func Shorten(line string) string {
	const maxBytes = 160
	if len(line) <= maxBytes {
		return line
	}
	return "…" + strings.ToValidUTF8(line[len(line)-maxBytes:], "")
}
