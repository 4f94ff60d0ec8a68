package world

import "github.com/joiner-sh/joiner/internal/emulator/world/failure"

// maxConsole is the number of bytes of console output that EC2 keeps. It drops older bytes.
const maxConsole = 64 << 10

// AppendConsole adds text to the console output of an instance. It returns false if the instance does not exist.
func (w *World) AppendConsole(instanceID, text string) bool {
	m := w.historyOf(instanceID)
	if m == nil {
		return false
	}
	m.console = append(m.console, text...)
	if over := len(m.console) - maxConsole; over > 0 {
		m.console = append([]byte(nil), m.console[over:]...)
	}
	return true
}

// Console returns the console output of an instance of the region.
func (s *Instances) Console(id string) (string, error) {
	if !wellFormed(id, "i") {
		return "", failure.New("InvalidInstanceID.Malformed", "Invalid id: %q", id)
	}
	m := s.byID[id]
	if m == nil {
		return "", failure.New("InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", id)
	}
	return string(m.console), nil
}
