const call = async (path, signal) => {
  const response = await fetch(`${process.env.UPSTREAM}/${path}`, { signal })
  if (!response.ok) throw new Error('the upstream fails')
  return response.json()
}
const answer = (n, run) => ({
  source: [{ name: 'upstream' }],
  body: { n, run, value: `stored-value-${run}` },
})

/** The upstream counts the runs and keeps the writes, since it is never killed. */
export const handlers = {
  work: async ({ n }, { signal }) => answer(n, await call(`work/${n}`, signal)),
  write: {
    prepare: async ({ n }, { signal, payment }) => answer(n, await call(`prepare/${payment.id}`, signal)),
    commit: (payment) => call(`commit/${payment}`),
    abort: (payment) => call(`abort/${payment}`),
  },
}
