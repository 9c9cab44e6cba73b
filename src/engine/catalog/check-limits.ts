import { parseGwei } from '../gwei.ts'
import { findNetwork } from '../networks.ts'
import { error, type Issue } from './issue.ts'
import type { Subject } from './subject.ts'
import { didYouMean } from './suggest.ts'

const LIMITS = ['payments', 'x402', 'limits']

/** Limits are said of networks that are offered, each under one of its names. */
export function checkLimits({ declared, document }: Subject): Issue[] {
  const { networks = [], limits = {} } = declared.payments?.x402 ?? {}
  const offered = new Set(networks.flatMap((name) => findNetwork(name)?.id ?? []))
  const seen = new Set<string>()
  return Object.keys(limits).flatMap((name) => {
    const at = document.atKey([...LIMITS, name])
    const network = findNetwork(name)
    if (network === undefined) {
      const sentence = `"${name}" is no known network${didYouMean(name, networks)}; limits are for networks of the list: ${networks.join(', ')}`
      return [error('network_unknown', at, sentence)]
    }
    if (!offered.has(network.id)) {
      const sentence = `${network.title} (${network.id}) is not offered: add it to "networks", or leave its limits out`
      return [error('network_not_offered', at, sentence)]
    }
    if (seen.has(network.id)) {
      const sentence = `${network.title} (${network.id}, ${network.nickname}) has its limits already`
      return [error('list_repeats', at, sentence)]
    }
    seen.add(network.id)
    return [
      ...checkAmount(document, name, 'max_fee_gwei', 'price of gas: write gwei', 'like 5 or 0.05'),
      ...checkAmount(document, name, 'max_gas_loss', `amount of ${network.coin}: write it`, 'like 0.005'),
    ]
  })
}

function checkAmount(
  document: Subject['document'],
  name: string,
  key: 'max_fee_gwei' | 'max_gas_loss',
  what: string,
  example: string,
): Issue[] {
  const path = [...LIMITS, name, key]
  const spelling = document.spelling(path)
  if (spelling === undefined || parseGwei(spelling) !== undefined) return []
  const sentence = `${spelling} is no ${what} as a decimal greater than zero, with at most nine places, ${example}`
  return [error('fee_invalid', document.at(path), sentence)]
}
