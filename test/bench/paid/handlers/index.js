const source = [{ name: 'computed' }]

/** Work that is counted, and lasts as long as the measurement says. */
async function work({ n }, { signal }) {
  const response = await fetch(`${process.env.UPSTREAM}/${n}`, { signal })
  if (!response.ok) throw new Error(`the upstream answered ${response.status}`)
  return { source, body: { n, run: await response.json() } }
}

async function answer({ n }) {
  return { source, body: { n } }
}

export const handlers = { work, answer }
