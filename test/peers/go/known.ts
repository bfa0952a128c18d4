/**
 * The Go client's tests that are left out, on ours and on Apache's alike, and why. Each that is not here
 * runs on a single server of both, and what passes on Apache's has to pass on ours.
 */
const three = 'it starts three servers, and ';

export const needsEnsemble: Readonly<Record<string, string>> = {
  TestIntegration_BasicCluster: `${three}reads from one what another wrote`,
  TestIntegration_ClientClusterFailover: `${three}goes on with its session when the leader is killed`,
  TestIntegration_NoQuorum: `${three}kills two of them`,
  TestIntegration_RecurringReAuthHang: `${three}authenticates anew when one is killed`,
  TestIntegration_DNSHostProviderReconnect: `${three}kills the one that it is connected to`,
  TestIntegration_IncrementalReconfig: `${three}takes one out of the ensemble and another in`,
  TestIntegration_Reconfig: `${three}takes one out of the ensemble`,
};
