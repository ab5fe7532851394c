package tasks

import "time"

// PollInterval is pollInterval.
func PollInterval(configured, age time.Duration, reading int64) time.Duration {
	return pollInterval(configured, age, reading)
}

// LimitPolls sets how many long-polls there are at once.
func (s *Service) LimitPolls(most int) {
	s.watches.mutex.Lock()
	defer s.watches.mutex.Unlock()
	s.watches.polls.limit, s.watches.polls.most = most, most
}

// AgeClosed has the service think that it saw a closed task half a minute ago.
func (s *Service) AgeClosed(owner, id string) {
	at, _ := s.address(owner, id)
	known, _ := s.closed.GetIfPresent(at)
	s.closed.Set(at, closedTask{known.task, known.seen.Add(-closedTaskLifetime)})
}

// Watched is how many tasks are looked at.
func (s *Service) Watched() int {
	s.watches.mutex.Lock()
	defer s.watches.mutex.Unlock()
	return len(s.watches.byWorkflow)
}
