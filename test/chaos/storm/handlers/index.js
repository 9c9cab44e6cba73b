const ask = async (path, signal) => {
  const response = await fetch(`${process.env.OFFICE}/${path}`, { signal })
  if (!response.ok) throw new Error('the office is unwell')
  return response.json()
}
const answer = (n, run) => ({ source: [{ name: 'office' }], body: { n, run, worth: `worth-${run}` } })

/** Everything done here is counted elsewhere, where no kill reaches. */
export const handlers = {
  work: async ({ n }, { signal }) => answer(n, await ask(`work/${n}`, signal)),
  note: {
    prepare: async ({ n }, { signal, payment }) => answer(n, await ask(`prepare/${payment.id}`, signal)),
    commit: (payment) => ask(`commit/${payment}`),
    abort: (payment) => ask(`abort/${payment}`),
  },
}
