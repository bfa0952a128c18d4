/**
 * What limits per address count by: an IPv4 address, or the first 64 bits of an IPv6 address.
 *
 * One machine mostly has a whole /64 to itself, so a limit per IPv6 address would be no limit.
 */

/** `address` as `Socket.remoteAddress` has it: IPv6 in short form, IPv4 perhaps behind `::ffff:`. */
export function addressKey(address: string): string {
  if (!address.includes(':')) return address;
  const plain = address.split('%', 1)[0]!;
  if (plain.includes('.')) return plain.slice(plain.lastIndexOf(':') + 1);
  const [front = '', back] = plain.split('::', 2);
  const groups = front === '' ? [] : front.split(':');
  if (back !== undefined) {
    const behind = back === '' ? [] : back.split(':');
    while (groups.length + behind.length < 8) groups.push('0');
    groups.push(...behind);
  }
  return `${groups
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ''))
    .join(':')}::/64`;
}
