import type { Network } from '../../networks.ts'
import type { Facilitator, SupportedKind } from './facilitator.ts'

export interface Survey {
  /** What an operator should know, one sentence each. */
  readonly problems: readonly string[]
  /** Networks that no facilitator takes, by the word of all of them. */
  readonly unsupported: readonly Network[]
}

/** Asks every facilitator once what it settles. Never rejects. */
export async function surveyFacilitators(
  facilitators: readonly Facilitator[],
  networks: readonly Network[],
): Promise<Survey> {
  if (networks.length === 0) return { problems: [], unsupported: [] }
  const answers = await Promise.all(
    facilitators.map(async (facilitator) => ({ facilitator, answer: await facilitator.supported() })),
  )
  const problems = answers.flatMap(({ facilitator: { url }, answer }) => {
    const name = `facilitator ${new URL(url).host}`
    switch (answer.kind) {
      case 'answer':
        return []
      case 'declined':
        return answer.status === 401 || answer.status === 403
          ? [`${name} refuses us (${answer.status}): check FACILITATOR_TOKEN`]
          : [`${name} has no /supported (${answer.status}): check FACILITATOR_URL`]
      case 'unreached':
      case 'lost':
        return [`${name} does not answer: payments fail while it is away`]
    }
  })
  const kinds = answers.flatMap(({ answer }) => (answer.kind === 'answer' ? answer.value : []))
  // One that has not answered may be the one that settles there.
  const unsupported = problems.length > 0 ? [] : networks.filter((network) => !takes(kinds, network))
  const blamed = unsupported.map(
    ({ title, id }) =>
      `${title} (${id}) cannot be offered: no facilitator settles there; take it from payments.x402.networks or set another FACILITATOR_URL`,
  )
  return { problems: [...problems, ...blamed], unsupported }
}

function takes(kinds: readonly SupportedKind[], { id }: Network): boolean {
  const [namespace = ''] = id.split(':')
  return kinds.some(
    ({ x402Version, scheme, network }) =>
      x402Version === 2 && scheme === 'exact' && (network === id || network === `${namespace}:*`),
  )
}
