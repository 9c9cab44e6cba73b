/** Named references that pages use; others stay as they are written. */
const NAMED: Readonly<Record<string, string>> = Object.fromEntries(
  (
    'amp=& lt=< gt=> quot=" apos=\' AMP=& LT=< GT=> QUOT=" nbsp=\u00a0 shy=\u00ad iexcl=¡ cent=¢ pound=£ curren=¤ yen=¥ brvbar=¦ sect=§ uml=¨ copy=© COPY=© reg=® REG=® ' +
    'ordf=ª laquo=« not=¬ macr=¯ deg=° plusmn=± sup1=¹ sup2=² sup3=³ acute=´ micro=µ para=¶ middot=· cedil=¸ ordm=º raquo=» frac14=¼ frac12=½ frac34=¾ iquest=¿ times=× divide=÷ ' +
    'Agrave=À Aacute=Á Acirc=Â Atilde=Ã Auml=Ä Aring=Å AElig=Æ Ccedil=Ç Egrave=È Eacute=É Ecirc=Ê Euml=Ë Igrave=Ì Iacute=Í Icirc=Î Iuml=Ï ETH=Ð Ntilde=Ñ Ograve=Ò Oacute=Ó Ocirc=Ô Otilde=Õ Ouml=Ö Oslash=Ø Ugrave=Ù Uacute=Ú Ucirc=Û Uuml=Ü Yacute=Ý THORN=Þ szlig=ß ' +
    'agrave=à aacute=á acirc=â atilde=ã auml=ä aring=å aelig=æ ccedil=ç egrave=è eacute=é ecirc=ê euml=ë igrave=ì iacute=í icirc=î iuml=ï eth=ð ntilde=ñ ograve=ò oacute=ó ocirc=ô otilde=õ ouml=ö oslash=ø ugrave=ù uacute=ú ucirc=û uuml=ü yacute=ý thorn=þ yuml=ÿ ' +
    'OElig=Œ oelig=œ Scaron=Š scaron=š Yuml=Ÿ fnof=ƒ circ=ˆ tilde=˜ ensp=\u2002 emsp=\u2003 thinsp=\u2009 zwnj=\u200c zwj=\u200d lrm=\u200e rlm=\u200f ndash=– mdash=— lsquo=‘ rsquo=’ sbquo=‚ ldquo=“ rdquo=” bdquo=„ dagger=† Dagger=‡ bull=• hellip=… permil=‰ prime=′ Prime=″ lsaquo=‹ rsaquo=› oline=‾ euro=€ trade=™ ' +
    'larr=← uarr=↑ rarr=→ darr=↓ harr=↔ rArr=⇒ lArr=⇐ forall=∀ part=∂ exist=∃ empty=∅ nabla=∇ isin=∈ notin=∉ prod=∏ sum=∑ minus=− radic=√ infin=∞ and=∧ or=∨ cap=∩ cup=∪ int=∫ asymp=≈ ne=≠ equiv=≡ le=≤ ge=≥ sub=⊂ sup=⊃ loz=◊ spades=♠ clubs=♣ hearts=♥ diams=♦ check=✓ star=☆ ' +
    'Alpha=Α Beta=Β Gamma=Γ Delta=Δ Omega=Ω Sigma=Σ Pi=Π alpha=α beta=β gamma=γ delta=δ epsilon=ε zeta=ζ eta=η theta=θ iota=ι kappa=κ lambda=λ mu=μ nu=ν xi=ξ pi=π rho=ρ sigma=σ tau=τ phi=φ chi=χ psi=ψ omega=ω'
  )
    .split(' ')
    .filter((pair) => pair.includes('='))
    .map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]),
)

/** Numbers that name control characters mean those of windows-1252 (HTML §13.2.5.80). */
const WINDOWS = '€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ'

export function decodeEntities(text: string): string {
  if (!text.includes('&')) return text
  return text.replace(
    /&(?:#(\d{1,8})|#[xX]([0-9a-fA-F]{1,7})|([a-zA-Z][a-zA-Z0-9]{1,30}));?/g,
    (whole, ...groups) => {
      const [decimal, hex, name]: (string | undefined)[] = groups
      if (name !== undefined) return Object.hasOwn(NAMED, name) ? (NAMED[name] ?? whole) : whole
      const code = decimal === undefined ? Number.parseInt(hex ?? '0', 16) : Number(decimal)
      if (code >= 0x80 && code <= 0x9f) return WINDOWS[code - 0x80] ?? '\ufffd'
      const isScalar = code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff)
      return isScalar ? String.fromCodePoint(code) : '\ufffd'
    },
  )
}
