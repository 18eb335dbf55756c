// The project's memory in OpenCode: a session is told what gnc knows, and after an answer gnc looks whether a run is due.
// Written by `gnc setup opencode`; tried with OpenCode 1.18.33 on 30 November 2026.
export const GncMemory = async ({ directory, $ }) => {
  const told = new Map() // Each session's block, which goes with every request
  const event = (more) => new Response(JSON.stringify({ cwd: directory, ...more }))
  const start = async (id) => {
    const about = event({ session_id: id, source: "startup" })
    const answer = await $`gnc hook session-start --host opencode < ${about}`.quiet().nothrow().json().catch(() => ({}))
    return answer.hookSpecificOutput?.additionalContext
  }
  return {
    "experimental.chat.system.transform": async ({ sessionID = "" }, output) => {
      if (!told.has(sessionID)) told.set(sessionID, start(sessionID))
      const block = await told.get(sessionID)
      if (block) output.system.push(block)
    },
    event: async ({ event: { type } }) => {
      if (type === "session.idle") await $`gnc hook stop --host opencode < ${event({})}`.quiet().nothrow()
    },
  }
}
