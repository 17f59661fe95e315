// Package elicitation asks people what MCP servers and the agents of editors elicit from users: to fill in a form, or to open a page.
//
// [Read] reads what is asked for, and [Elicitation.Ask] puts it to people as a question, with the form for who can show one and in
// words for everybody else, until an answer fits.
package elicitation
