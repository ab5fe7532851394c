package e2e_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"taskbridge/internal/mcpclient"
	"taskbridge/internal/testenv"
)

// startSamples starts a worker of workflows which Temporal published as samples, and a front end that offers them by
// nothing but the catalog of the tutorial.
func startSamples(t *testing.T) (*mcpclient.Client, *expenseSystem) {
	t.Helper()
	expenses := newExpenseSystem(t)
	env := append(temporalEnv(t), "EXPENSE_ADDRESS="+expenses.address)
	start(t, env, built(t, "../tools/samples", "./worker")).waitFor("Started Worker")
	_, c := startFrontEnd(t, "../examples/existing/expense.yaml")
	return c, expenses
}

// expenseSystem is what the activities of the sample talk to. The server that comes with the sample listens on port 8099
// and nowhere else, which may not be free.
type expenseSystem struct {
	address string
	mu      sync.Mutex
	tokens  map[string]string // of the activities that wait for a decision, by expense
	paid    map[string]bool
}

func newExpenseSystem(t testing.TB) *expenseSystem {
	s := &expenseSystem{tokens: map[string]string{}, paid: map[string]bool{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.address = strings.TrimPrefix(server.URL, "http://")
	return s
}

func (s *expenseSystem) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch id := r.FormValue("id"); r.URL.Path {
	case "/registerCallback":
		s.tokens[id] = r.PostFormValue("task_token")
	case "/action":
		s.paid[id] = r.FormValue("type") == "payment"
	}
	_, _ = io.WriteString(w, "SUCCEED")
}

func (s *expenseSystem) token(id string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return []byte(s.tokens[id])
}

func (s *expenseSystem) hasPaid(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.paid[id]
}

func TestSampleOfAnExpense(t *testing.T) {
	c, expenses := startSamples(t)
	submit := func(t *testing.T) (id, expense string) {
		expense = uuid.NewString()
		return createWith(t, c, "pay_expense", `{"id":"`+expense+`"}`), expense
	}
	t.Run("is paid once its task's question is accepted", func(t *testing.T) {
		id, expense := submit(t)
		assert.Equal(t, "Approve expense "+expense+"?", answerQuestion(t, c, id, `{"action":"accept","content":{}}`))
		assertText(t, c, id, "COMPLETED")
		assert.True(t, expenses.hasPaid(expense))
	})
	t.Run("is not paid if the question is declined", func(t *testing.T) {
		id, expense := submit(t)
		answerQuestion(t, c, id, `{"action":"decline"}`)
		assertText(t, c, id, "")
		assert.False(t, expenses.hasPaid(expense))
	})
	t.Run("can be approved where it always was", func(t *testing.T) {
		id, expense := submit(t)
		approveElsewhere(t, expenses, expense)
		assertText(t, c, id, "COMPLETED")
		assert.True(t, expenses.hasPaid(expense))
	})
	t.Run("can be followed and approved if somebody else has submitted it", func(t *testing.T) {
		expense := uuid.NewString()
		submitted, err := testenv.Client(t).ExecuteWorkflow(t.Context(),
			client.StartWorkflowOptions{ID: "expense_" + expense, TaskQueue: "expense"}, "SampleExpenseWorkflow", expense)
		require.NoError(t, err)
		id := createWith(t, c, "follow_expense", `{"id":"`+expense+`"}`)
		answerQuestion(t, c, id, `{"action":"accept","content":{}}`)
		assertText(t, c, id, "COMPLETED")
		var result string
		require.NoError(t, submitted.Get(t.Context(), &result))
		assert.Equal(t, "COMPLETED", result)
		assert.True(t, expenses.hasPaid(expense))
	})
}

func TestSampleOfTrips(t *testing.T) {
	c, _ := startSamples(t)
	id := createWith(t, c, "count_trips", `{"TripCounter":4}`)
	untilTask(t, c, id, says(`^4 trips so far$`))
	assert.Equal(t, "Which trip is next?", answerQuestion(t, c, id, `{"action":"accept","content":{"ID":"Rome","Total":1500}}`))
	untilTask(t, c, id, says(`^5 trips so far$`))
	answerQuestion(t, c, id, `{"action":"accept","content":{"ID":"Oslo","Total":2100}}`)
	untilTask(t, c, id, says(`^6 trips so far$`))
	answerQuestion(t, c, id, `{"action":"decline"}`)
	untilTask(t, c, id, status("cancelled"))
}

// answerQuestion waits for the one question of a task, answers it, and returns what it said.
func answerQuestion(t *testing.T, c *mcpclient.Client, id, answer string) string {
	t.Helper()
	asked := untilTask(t, c, id, status("input_required"))
	require.Len(t, asked.InputRequests, 1)
	var question struct{ Message string }
	answers := map[string]json.RawMessage{}
	for key, request := range asked.InputRequests {
		require.NoError(t, json.Unmarshal(request.Params, &question))
		answers[key] = json.RawMessage(answer)
	}
	require.NoError(t, c.UpdateTask(t.Context(), id, answers))
	return question.Message
}

// approveElsewhere approves an expense as the sample's own server does, once the workflow waits for it.
func approveElsewhere(t *testing.T, expenses *expenseSystem, expense string) {
	t.Helper()
	temporal := testenv.Client(t)
	require.Eventually(t, func() bool {
		token := expenses.token(expense)
		return len(token) > 0 && temporal.CompleteActivity(t.Context(), token, "APPROVED", nil) == nil
	}, patience, 50*time.Millisecond, "nobody waits for a decision")
}

func assertText(t *testing.T, c *mcpclient.Client, id, want string) {
	t.Helper()
	ended := untilTask(t, c, id, status("completed"))
	decode[struct{ Result result }](t, string(ended.Raw)).Result.assertText(t, want)
}
